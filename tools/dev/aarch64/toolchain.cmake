# Builds for aarch64 Linux with Debian's cross compiler; what is built runs under qemu-user here. Archives come
# from CMAKE_FIND_ROOT_PATH where it is given.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
if(CMAKE_FIND_ROOT_PATH)
  foreach(language C CXX)
    set(CMAKE_${language}_FLAGS_INIT "-idirafter ${CMAKE_FIND_ROOT_PATH}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}")
  endforeach()
endif()
