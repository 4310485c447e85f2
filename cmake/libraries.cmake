# The libraries for other people's programs, ingot::ingot (shared) and ingot::ingot_static: all folders as one, of which only the
# names in the public headers can be seen. Everything else is compiled with hidden visibility.
set(ingot_public_headers compiler/ingot.h compiler/ingot_ops.h compiler/ingot_train.h compiler/dtypes.def compiler/monoids.def
  importers/ingot_model.h importers/gguf/gguf.h importers/onnx/ingot_onnx.h importers/safetensors/safetensors.h
  importers/tflite/tflite.h)
set(ingot_include ${PROJECT_BINARY_DIR}/include/ingot) # what the folders of the tree would show is more
foreach(header ${ingot_public_headers})
  get_filename_component(name ${header} NAME)
  configure_file(${header} ${ingot_include}/${name} COPYONLY)
endforeach()

set(ingot_parts ${ingot_compiler_rooms} ingot_runtime ingot_importers ${ingot_codegen_rooms} ingot_custom ingot_targets ingot_pipeline)
if(TARGET ingot_libclang)
  list(APPEND ingot_parts ingot_libclang)
endif()
set(ingot_objects "")
foreach(part ${ingot_parts})
  list(APPEND ingot_objects $<TARGET_OBJECTS:${part}>)
endforeach()
set(ingot_needs PkgConfig::PROTOBUF_C m Threads::Threads ${CMAKE_DL_LIBS})

add_library(ingot_shared SHARED ${ingot_objects})
target_link_libraries(ingot_shared PRIVATE ${ingot_needs})
set_target_properties(ingot_shared PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ingot EXPORT_NAME ingot
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
if(NOT APPLE AND NOT WIN32)
  if(NOT CMAKE_BUILD_TYPE STREQUAL Sanitize)
    target_link_options(ingot_shared PRIVATE LINKER:-z,defs) # a folder that is not in the list above is missed here
  endif()
  target_link_options(ingot_shared PRIVATE "LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/ingot.map")
  set_target_properties(ingot_shared PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/ingot.map)
endif()

# One object, in which the linker has settled what is private; several archives of several folders would show it all.
if(CMAKE_OBJCOPY AND NOT APPLE AND NOT WIN32)
  set(object ${PROJECT_BINARY_DIR}/ingot_static.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_LINKER} -r -o ${object} ${ingot_objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
    DEPENDS ${ingot_objects} ${ingot_parts} COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(ingot_static STATIC ${object})
else()
  add_library(ingot_static STATIC ${ingot_objects})
endif()
set_target_properties(ingot_static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ingot)
set(ingot_static_libraries protobuf-c m pthread ${CMAKE_DL_LIBS})
target_link_libraries(ingot_static INTERFACE ${ingot_static_libraries})

foreach(library ingot_shared ingot_static)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${ingot_include}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ingot>)
endforeach()
add_library(ingot::ingot ALIAS ingot_shared)
add_library(ingot::ingot_static ALIAS ingot_static)
set_target_properties(ingot PROPERTIES EXPORT_NAME compiler)
add_executable(ingot::compiler ALIAS ingot)
