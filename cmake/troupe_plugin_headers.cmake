# Included by the install script, with SOURCE=src and DESTINATION=include/troupe/plugin: installs the headers for libraries
# outside the tree. Those of src/plugin/ come to DESTINATION; what they include of src/, and so on, comes below
# DESTINATION/internal. Includes rooted at src/ become <troupe/plugin/...>, so that programs need no other include path,
# and no file of theirs is taken for one of these.
cmake_policy(VERSION 3.25)  # an install script has none
file(GLOB_RECURSE wanted RELATIVE ${SOURCE} ${SOURCE}/plugin/*.hpp)
set(done "")
while(wanted)
  list(POP_FRONT wanted header)
  if(header IN_LIST done)
    continue()
  endif()
  list(APPEND done ${header})
  file(READ ${SOURCE}/${header} text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" include "${include}")
    list(APPEND wanted ${include})
  endforeach()
  string(REGEX REPLACE "#include \"plugin/([^\"]+)\"" "#include <troupe/plugin/\\1>" text "${text}")
  string(REGEX REPLACE "#include \"([^\"]+)\"" "#include <troupe/plugin/internal/\\1>" text "${text}")
  string(REGEX REPLACE "^plugin/" "" to ${header})
  if(to STREQUAL header)
    set(to internal/${header})
  endif()
  file(WRITE ${DESTINATION}/${to} "${text}")
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${DESTINATION}/${to})
endwhile()
