# What turns a memory error of ours into an end of the program: harden(TARGET) gives it to all that link
# the interface library TARGET. tests/e2e/test_hardening.py reads it from the programs.
function(harden target)
  target_compile_options(${target} INTERFACE -fstack-protector-strong -D_FORTIFY_SOURCE=2)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(${target} INTERFACE -fcf-protection=full)
  endif()
  target_link_options(${target} INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endfunction()
