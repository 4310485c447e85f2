# ingot_add_model(TARGET MODEL.onnx [NAME name] [FLAGS flag...] [DEPENDS file...])
#
# TARGET is then a library to link: the model, compiled by ingot when the project is built and by this project's C compiler, and its
# header, <name>.h.
#
#   NAME      prefix of everything emitted; TARGET unless told
#   FLAGS     of `ingot compile`: --target c:cortex-m4 --dim batch=4 ... Weights are linked in (--weights incbin) unless they say otherwise
#   DEPENDS   targets or files that have to be there before; what ingot reads (the model, its external data, schedules, C of
#             operators) is known without
#
# The model is compiled again when a file that ingot read has changed. INGOT_EXECUTABLE is the ingot that is used, if it is set:
# when cross-compiling from a source tree, that of this machine.

function(ingot_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "FLAGS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "ingot_add_model(${target}): what is '${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}'? "
      "ingot_add_model(TARGET MODEL [NAME name] [FLAGS flag...] [DEPENDS file...])")
  endif()
  set(name ${arg_NAME})
  if(NOT name)
    string(MAKE_C_IDENTIFIER "${target}" name)
  endif()
  get_filename_component(model "${model}" ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT arg_DEPENDS AND NOT EXISTS "${model}")
    message(FATAL_ERROR "ingot_add_model(${target}): there is no ${model}")
  endif()

  if(INGOT_EXECUTABLE)
    set(ingot ${INGOT_EXECUTABLE})
  else()
    get_target_property(imported ingot::compiler IMPORTED)
    if(CMAKE_CROSSCOMPILING AND NOT imported)
      message(FATAL_ERROR "ingot_add_model(${target}): ingot is built for another machine here; set INGOT_EXECUTABLE to one that runs on this")
    endif()
    set(ingot $<TARGET_FILE:ingot::compiler>)
  endif()

  set(weights --weights incbin)
  foreach(flag IN LISTS arg_FLAGS)
    if(flag MATCHES "^--weights")
      set(weights "")
    endif()
  endforeach()

  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  set(work ${CMAKE_CURRENT_BINARY_DIR}/${target}.ingot)
  set(bundle ${work}/bundle)
  set(build ${work}/build)
  if(several)
    set(build ${work}/$<CONFIG>)
  endif()
  set(library ${build}/${CMAKE_STATIC_LIBRARY_PREFIX}${name}${CMAKE_STATIC_LIBRARY_SUFFIX})
  file(MAKE_DIRECTORY ${work})
  add_custom_command(OUTPUT ${bundle}/ingot.manifest BYPRODUCTS ${bundle}/${name}.h
    COMMAND ${ingot} compile ${model} -o ${bundle} --name ${name} ${weights} --depfile ${work}/files.d ${arg_FLAGS}
    DEPENDS ${model} ${ingot} ${arg_DEPENDS}
    DEPFILE ${work}/files.d
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMENT "ingot compile ${target}" VERBATIM)

  # The bundle builds itself, as this project is built.
  set(generator ${CMAKE_GENERATOR})
  if(several)
    set(generator Ninja) # one configuration a folder
  endif()
  set(settings -DCMAKE_BUILD_TYPE=$<CONFIG> -DCMAKE_ARCHIVE_OUTPUT_DIRECTORY=${build})
  foreach(v CMAKE_TOOLCHAIN_FILE CMAKE_C_COMPILER CMAKE_C_COMPILER_LAUNCHER CMAKE_C_FLAGS CMAKE_SYSROOT CMAKE_MAKE_PROGRAM CMAKE_OSX_ARCHITECTURES
      CMAKE_OSX_SYSROOT CMAKE_OSX_DEPLOYMENT_TARGET CMAKE_INTERPROCEDURAL_OPTIMIZATION CMAKE_POSITION_INDEPENDENT_CODE
      CMAKE_TRY_COMPILE_TARGET_TYPE)
    if(DEFINED ${v} AND NOT "${${v}}" STREQUAL "")
      string(REPLACE ";" "$<SEMICOLON>" value "${${v}}")
      list(APPEND settings "-D${v}=${value}")
    endif()
  endforeach()
  if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE AND NOT CMAKE_CROSSCOMPILING)
    list(APPEND settings -DCMAKE_POSITION_INDEPENDENT_CODE=ON)
  endif()
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_TOOLCHAIN_FILE)
    list(APPEND settings -DCMAKE_SYSTEM_NAME=${CMAKE_SYSTEM_NAME} -DCMAKE_SYSTEM_PROCESSOR=${CMAKE_SYSTEM_PROCESSOR})
  endif()
  add_custom_command(OUTPUT ${library}
    COMMAND ${CMAKE_COMMAND} -S ${bundle} -B ${build} -G ${generator} ${settings} --no-warn-unused-cli
    COMMAND ${CMAKE_COMMAND} --build ${build} --target ${name}_model
    COMMAND ${CMAKE_COMMAND} -E touch ${library}
    DEPENDS ${bundle}/ingot.manifest
    COMMENT "Building model ${target}" VERBATIM)
  add_custom_target(${target}_build DEPENDS ${library})

  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_build)
  target_include_directories(${target} INTERFACE ${bundle})
  target_link_libraries(${target} INTERFACE ${library})
  if(NOT WIN32)
    target_link_libraries(${target} INTERFACE m)
  endif()
endfunction()
