// extensions/transform/facts.cpp: which rule an op has, found at its first call in a batch.
#include <adjoin/kit/words.hpp>

#include "batch.hpp"
#include "by_op.hpp"

namespace adjoin::transform {
namespace {

bool starts(std::string_view s, std::string_view with) { return s.starts_with(with); }

// Elementwise kinds of the core.
bool pointwise(std::string_view kind) {
  return starts(kind, "unary") || starts(kind, "binary") || kind == "compare" ||
         kind == "pointwise";
}

// A rule of a plugin's: "aj.batch", by the op's name.
const aj_batch_def* foreign_rule(std::string_view name) {
  return static_cast<const aj_batch_def*>(given_rule_of(AJ_STR_LIT("aj.batch"), name));
}

// Makes a tensor without looking at values: what comes of it is the level's own.
bool makes_new(std::string_view name, const OpFacts& f) {
  if (has_word(f.tags, "factory") || name.ends_with("_like") || starts(name, "new_") ||
      name == "clone")
    return true;
  for (auto& p : f.params)
    if (p.tensor() || p.base == AJ_PARAM_FUNCTION) return false;
  return f.nresults == 1 && !f.list_result;
}

void choose(OpFacts& f) {
  const std::string_view name = f.name;
  f.foreign = foreign_rule(name);
  if (f.foreign) {
    if (f.foreign->batch)
      f.rule = rule_foreign;
    else
      f.refused =
          f.foreign->reason.len ? f.foreign->reason.data : "the plugin that has the op refuses it";
    return;
  }
  if ((f.refused = refusal(name))) return;
  if ((f.rule = written_rule(name))) return;
  if (pointwise(f.kind) || has_word(f.tags, "elementwise")) {
    f.rule = rule_align;
  } else if (starts(f.kind, "reduce") || f.kind == "scan" || f.kind == "view" ||
             has_word(f.tags, "batch:dims")) {
    f.rule = rule_dims;
  } else if (has_word(f.tags, "batch:fold")) {
    f.rule = rule_fold;
  } else if (has_word(f.tags, "batch:lead")) {
    f.rule = rule_lead;
  } else if (f.why = looped(name); !f.has_body || !f.why.empty()) {
    f.rule = rule_loop;
    if (!f.has_body) f.why = "it has neither a rule nor a body";
  }
}

void make_facts(const aj_op* op, OpFacts& f) {
  aj_op_info info{};
  info.struct_size = sizeof info;
  check(dispatch().op_info(op, &info));
  f.op = op;
  f.name = view_of(info.name);
  f.kind = view_of(info.kind);
  f.tags = view_of(info.tags);
  f.nresults = info.nresults;
  f.has_body = info.flags & AJ_INFO_COMPOSITE;
  for (uint32_t i = 0; i < info.nparams; i++) {
    aj_param p{};
    p.struct_size = sizeof p;
    check(dispatch().op_param(op, i, &p));
    f.params.push_back({p.base, p.list, p.flags, std::string(view_of(p.name)),
                        p.dtypes && !(p.dtypes & (p.dtypes - 1))});
  }
  if (info.nresults) {
    aj_param r{};
    r.struct_size = sizeof r;
    check(dispatch().op_result(op, 0, &r));
    f.list_result = r.list != 0;
    f.writes_first =
        !f.params.empty() && (f.params[0].flags & AJ_PARAM_WRITTEN) && f.params[0].list == 0;
  }
  f.makes = makes_new(f.name, f);
  f.random = f.has_body && f.name.find("dropout") != std::string::npos;
  for (auto& p : f.params) f.random |= f.has_body && p.base == AJ_PARAM_GENERATOR;
  f.draws = f.name.find("_philox") != std::string::npos;
  choose(f);
}

}  // namespace

int OpFacts::find(std::string_view param) const {
  for (size_t i = 0; i < params.size(); i++)
    if (params[i].name == param) return int(i);
  return -1;
}

const OpFacts& facts_of(const aj_op* op) { return known_of<OpFacts, make_facts>(op); }

}  // namespace adjoin::transform
