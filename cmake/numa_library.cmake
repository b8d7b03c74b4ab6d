# Every target of the project gets the same treatment from these four functions.
#   numa_library(NAME SOURCES … HEADERS … DEPS … PRIVATE_DEPS …)   library numa::NAME; no SOURCES: headers only
#   numa_program(NAME SOURCES … DEPS …)                            build/<preset>/bin/NAME
#   numa_test(NAME SOURCES … DEPS … [LABELS …])                    a GoogleTest binary, one ctest entry per TEST
#   numa_fuzz(NAME SOURCES … DEPS …)                               a libFuzzer binary, only with PLUMBLINE_FUZZ
option(PLUMBLINE_WERROR "treat warnings as errors" OFF)
set(PLUMBLINE_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
                       -Wold-style-cast)
if(PLUMBLINE_WERROR)
  list(APPEND PLUMBLINE_WARNINGS -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 sees uninitialised reads inside absl::InlinedVector once it inlines them; clang-tidy and the
  # sanitizers look for the real ones.
  list(APPEND PLUMBLINE_WARNINGS -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND PLUMBLINE_WARNINGS -Wthread-safety)
endif()

function(_numa_common target scope)
  target_compile_features(${target} ${scope} cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF VERIFY_INTERFACE_HEADER_SETS ON)
  if(NOT scope STREQUAL INTERFACE)
    target_compile_options(${target} PRIVATE ${PLUMBLINE_WARNINGS})
  endif()
endfunction()

function(numa_library name)
  cmake_parse_arguments(A "" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(scope PUBLIC)
  if(NOT A_SOURCES)
    set(scope INTERFACE)
  endif()
  if(scope STREQUAL INTERFACE)
    add_library(${name} INTERFACE)
  else()
    add_library(${name} STATIC ${A_SOURCES})
    target_link_libraries(${name} PRIVATE ${A_PRIVATE_DEPS})
  endif()
  add_library(numa::${name} ALIAS ${name})
  _numa_common(${name} ${scope})
  target_sources(${name} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${A_HEADERS})
  target_link_libraries(${name} ${scope} ${A_DEPS})
endfunction()

function(numa_program name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${A_DEPS})
  _numa_common(${name} PRIVATE)
endfunction()

include(GoogleTest)
function(numa_test name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  numa_program(${name} SOURCES ${A_SOURCES} DEPS ${A_DEPS} test_support GTest::gmock GTest::gtest_main)
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  # PRE_TEST: found when ctest runs, so that building needs no running of half-built programs.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                       PROPERTIES LABELS "${A_LABELS}" TIMEOUT 300)
endfunction()

function(numa_fuzz name)
  if(NOT PLUMBLINE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  numa_program(${name} SOURCES ${A_SOURCES} DEPS ${A_DEPS})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY PLUMBLINE_FUZZERS ${name})
endfunction()
