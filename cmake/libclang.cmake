# libclang, for what reads C: target ingot_libclang, and INGOT_LIBCLANG=1 in what links it. Without it there is no target.
find_path(LIBCLANG_INCLUDE clang-c/Index.h PATHS /usr/lib/llvm-14 /usr/lib/llvm-15 /usr/lib/llvm-16
  /usr/lib/llvm-17 /usr/lib/llvm-18 /usr/lib/llvm-19 PATH_SUFFIXES include)
find_library(LIBCLANG_LIBRARY NAMES clang HINTS ${LIBCLANG_INCLUDE}/../lib)
mark_as_advanced(LIBCLANG_INCLUDE LIBCLANG_LIBRARY)
if(LIBCLANG_INCLUDE AND LIBCLANG_LIBRARY)
  add_library(ingot_libclang INTERFACE)
  target_compile_definitions(ingot_libclang INTERFACE INGOT_LIBCLANG=1)
  # libclang seldom finds its own headers (stddef.h, stdint.h) when it is linked into another program
  file(GLOB resources ${LIBCLANG_INCLUDE}/../lib/clang/*/include/stddef.h ${LIBCLANG_INCLUDE}/../lib64/clang/*/include/stddef.h)
  if(resources)
    list(GET resources 0 resources)
    get_filename_component(resources ${resources}/../.. ABSOLUTE)
    target_compile_definitions(ingot_libclang INTERFACE "INGOT_CLANG_RESOURCES=\"${resources}\"")
  endif()
  target_include_directories(ingot_libclang SYSTEM INTERFACE ${LIBCLANG_INCLUDE})
  target_link_libraries(ingot_libclang INTERFACE ${LIBCLANG_LIBRARY})
endif()
