# ingot_files(NAME HEADER FILE...): NAME.c, which holds these files as bytes, in a table of that name that HEADER declares; they
# ride inside the library, so that an installed compiler needs no source tree.
function(ingot_files name header)
  set(embed ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(
    OUTPUT ${name}.c
    COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_CURRENT_BINARY_DIR}/${name}.c -DNAME=${name} -DHEADER=${header} "-DFILES=${ARGN}" -P ${embed}
    DEPENDS ${ARGN} ${embed}
    VERBATIM)
endfunction()
