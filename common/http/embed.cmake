# Writes OUTPUT, a C++ source of the FUNCTION that gives the page's FILES as bytes (see ).
# cmake -DOUTPUT=... -DFOLDER=... -DFUNCTION=... -DFILES=index.html,page.js,... -P embed.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(arrays "")
set(table "")
set(number 0)
foreach(file IN LISTS FILES)
  file(READ ${FOLDER}/${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REPLACE "0x0a," "0x0a,\n" bytes "${bytes}")  # a line for each of the file
  if(file MATCHES "\\.html$")
    set(type "text/html; charset=utf-8")
  elseif(file MATCHES "\\.js$")
    set(type "text/javascript; charset=utf-8")
  elseif(file MATCHES "\\.css$")
    set(type "text/css; charset=utf-8")
  elseif(file MATCHES "\\.svg$")
    set(type "image/svg+xml")
  elseif(file MATCHES "\\.json$")
    set(type "application/json")
  else()
    message(FATAL_ERROR "${file}: no type is known for it")
  endif()
  get_filename_component(name ${file} NAME)
  if(name STREQUAL "index.html")
    set(path "/")
  elseif(name STREQUAL "openapi.json")
    set(path "/api/v1/openapi.json")
  else()
    set(path "/${name}")
  endif()
  string(APPEND arrays "constexpr unsigned char kBytes${number}[] = {\n${bytes}};\n")
  string(APPEND table
    "    {\"${path}\", \"${type}\", {reinterpret_cast<const char*>(kBytes${number}), sizeof(kBytes${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"common/http/http_server.hpp\"

namespace gleaner {
namespace {

${arrays}
}  // namespace

std::span<const PageAsset> ${FUNCTION}() {
  static const PageAsset kAssets[] = {
${table}  };
  return kAssets;
}

}  // namespace gleaner
")
