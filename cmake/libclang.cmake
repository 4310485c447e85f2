# libclang, for what reads C (codegen/clang): target ingot_libclang_headers, and where the library is that is loaded when it is
# needed. Without the headers there is no target.
find_path(LIBCLANG_INCLUDE clang-c/Index.h PATHS /usr/lib/llvm-14 /usr/lib/llvm-15 /usr/lib/llvm-16
  /usr/lib/llvm-17 /usr/lib/llvm-18 /usr/lib/llvm-19 PATH_SUFFIXES include)
find_library(LIBCLANG_LIBRARY NAMES clang HINTS ${LIBCLANG_INCLUDE}/../lib)
mark_as_advanced(LIBCLANG_INCLUDE LIBCLANG_LIBRARY)
if(LIBCLANG_INCLUDE AND LIBCLANG_LIBRARY)
  add_library(ingot_libclang_headers INTERFACE)
  target_include_directories(ingot_libclang_headers SYSTEM INTERFACE ${LIBCLANG_INCLUDE})
  file(GLOB resources ${LIBCLANG_INCLUDE}/../lib/clang/*/include/stddef.h ${LIBCLANG_INCLUDE}/../lib64/clang/*/include/stddef.h)
  if(resources)
    list(GET resources 0 resources)
    get_filename_component(resources ${resources}/../.. ABSOLUTE)
  endif()
  # what the loader calls it: libclang-14.so.13 behind libclang.so
  get_filename_component(file ${LIBCLANG_LIBRARY} REALPATH)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${file} OUTPUT_VARIABLE dynamic ERROR_QUIET)
  string(REGEX MATCH "SONAME +([^ \n]+)" found "${dynamic}")
  set(soname "${CMAKE_MATCH_1}")
  if(NOT soname)
    get_filename_component(soname ${file} NAME)
  endif()
  target_compile_definitions(ingot_libclang_headers INTERFACE "INGOT_LIBCLANG_FILE=\"${LIBCLANG_LIBRARY}\""
    "INGOT_LIBCLANG_NAME=\"${soname}\"" "INGOT_CLANG_RESOURCES=\"${resources}\"")
endif()
