# ingot_room(NAME those it sees): the folder NAME here is the library ingot_NAME. Whoever sees it finds its headers, and those of what it sees;
# those of its inner folders are its own. All rooms of a CMakeLists.txt are in ${rooms}.
function(ingot_room room)
  file(GLOB sources CONFIGURE_DEPENDS ${room}/*.c ${room}/*/*.c)
  file(GLOB inner LIST_DIRECTORIES true CONFIGURE_DEPENDS ${room}/*)
  list(FILTER inner EXCLUDE REGEX "\\.[a-z]+$")
  list(TRANSFORM ARGN PREPEND ingot_)
  add_library(ingot_${room} STATIC ${sources})
  ingot_together(ingot_${room} ${sources})
  target_include_directories(ingot_${room} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/${room} PRIVATE ${inner})
  target_link_libraries(ingot_${room} PUBLIC ${ARGN} PRIVATE ingot_flags)
  set(rooms ${rooms} ingot_${room} PARENT_SCOPE)
endfunction()
