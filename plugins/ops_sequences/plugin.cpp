// plugins/ops_sequences/plugin.cpp: recurrent layers, bags of embeddings, CTC, loaded with the
// first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_sequences(aj_registrar* r);  // opgen makes it of sequences.toml
}

AJ_PLUGIN(.name = "ops_sequences", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:sequences") {
  adjoin::kit::check(adjoin::register_sequences(plugin.env()->registrar));
}
