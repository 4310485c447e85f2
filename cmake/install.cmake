# What `cmake --install` and `cpack` bring: the program, its manual and completions, both libraries with their headers, and what
# find_package and pkg-config look for.
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ingot)

install(TARGETS ingot ingot_shared ingot_static EXPORT ingotTargets)
install(FILES ${ingot_public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ingot)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ingot RENAME copyright)
install(EXPORT ingotTargets NAMESPACE ingot:: DESTINATION ${config_dir})
configure_package_config_file(cmake/ingotConfig.cmake.in ${PROJECT_BINARY_DIR}/ingotConfig.cmake
  INSTALL_DESTINATION ${config_dir})
# the program serves projects for any machine: that of the libraries is not compared
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ingotConfigVersion.cmake COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/ingotConfig.cmake ${PROJECT_BINARY_DIR}/ingotConfigVersion.cmake cmake/ingotModel.cmake
  DESTINATION ${config_dir})

file(RELATIVE_PATH prefix_from_here /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(libs_private "")
foreach(library ${ingot_static_libraries})
  if(library MATCHES "/")
    string(APPEND libs_private " ${library}")
  else()
    string(APPEND libs_private " -l${library}")
  endif()
endforeach()
configure_file(cmake/ingot.pc.in ${PROJECT_BINARY_DIR}/ingot.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ingot.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The program writes its own manual and completions.
if(NOT CMAKE_CROSSCOMPILING)
  set(share ${PROJECT_BINARY_DIR}/share)
  set(pages "")
  foreach(page ingot compile run verify bench check inspect explain audit targets tune cache completion manual)
    set(file ${share}/man1/ingot-${page}.1)
    if(page STREQUAL ingot)
      set(file ${share}/man1/ingot.1)
    endif()
    add_custom_command(OUTPUT ${file} COMMAND ${CMAKE_COMMAND} -E make_directory ${share}/man1
      COMMAND $<TARGET_FILE:ingot> manual ${page} > ${file} DEPENDS ingot VERBATIM)
    list(APPEND pages ${file})
  endforeach()
  foreach(shell bash zsh fish)
    add_custom_command(OUTPUT ${share}/completion.${shell} COMMAND $<TARGET_FILE:ingot> completion ${shell} > ${share}/completion.${shell}
      DEPENDS ingot VERBATIM)
    list(APPEND completions ${share}/completion.${shell})
  endforeach()
  add_custom_target(ingot_manual ALL DEPENDS ${pages} ${completions})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${share}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ingot)
  install(FILES ${share}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _ingot)
  install(FILES ${share}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ingot.fish)
endif()

# cpack -G DEB
set(CPACK_PACKAGE_NAME ingot)
set(CPACK_PACKAGE_CONTACT "The ingot authors <ingot@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiles neural networks to plain C, ahead of time")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# What it links is found by dpkg-shlibdeps, of dpkg-dev; without it, as Debian 12 calls it.
find_program(INGOT_SHLIBDEPS dpkg-shlibdeps)
if(INGOT_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libprotobuf-c1")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc | clang, make, libc6-dev")
if("${LIBCLANG_INCLUDE}" MATCHES "llvm-([0-9]+)") # loaded when a command reads C, with clang's own headers
  string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS ", libclang1-${CMAKE_MATCH_1}, libclang-common-${CMAKE_MATCH_1}-dev")
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, pkg-config, libprotobuf-c-dev")
include(CPack)
