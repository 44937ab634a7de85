#pragma once

#include <exception>
#include <sstream>
#include <string>

#include <cereal/archives/portable_binary.hpp>

#include <troupe/actor/serializer.hpp>

namespace troupe {

/// Lets messages travel as cereal puts them: all that cereal has an include for (maps, variants,
/// polymorphic pointers). For the types that a program says:
///
/// \code
///   template <>
///   struct troupe::Serializer<Scene> : troupe::CerealSerializer<Scene> {};
/// \endcode
template <class T>
struct CerealSerializer {
  static void write(MessageWriter& writer, const T& value) {
    std::ostringstream stream(std::ios::binary);
    cereal::PortableBinaryOutputArchive archive(stream);
    archive(value);
    writer(stream.str());
  }
  static void read(MessageReader& reader, T& value) {
    std::string bytes;
    reader(bytes);
    if (reader.failed()) return;
    try {
      std::istringstream stream(bytes, std::ios::binary);
      cereal::PortableBinaryInputArchive archive(stream);
      archive(value);
    } catch (const std::exception&) {  // cereal's own, or no memory for a length that is wrong
      reader.fail();
    }
  }
};

}  // namespace troupe
