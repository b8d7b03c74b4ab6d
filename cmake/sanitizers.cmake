# PLUMBLINE_SANITIZE: "", "address,undefined" or "thread"; for the whole build, since they do not mix.
set(PLUMBLINE_SANITIZE "" CACHE STRING "sanitizers for the whole build")
if(PLUMBLINE_SANITIZE)
  add_compile_options(-fsanitize=${PLUMBLINE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PLUMBLINE_SANITIZE})
  if(PLUMBLINE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
