// core/ops/rare/einsum.cpp: sums of products in Einstein's notation, two operands at a time by bmm.
#include <adjoin/kit/make.hpp>
#include <map>

#include "core/base/plain.hpp"

namespace adjoin::ops {
namespace {

// A subscript: a letter, or a place in the ellipsis counted from its end ("." is the last).
using Label = int;
constexpr Label kDots = 256;
using Labels = std::vector<Label>;

struct Term {
  Tensor t;
  Labels labels;
};

std::string letters(const Labels& labels) {
  std::string s;
  for (Label l : labels) s += l >= kDots ? '.' : char(l);
  return s;
}

// The labels of one operand; `dots` is how many dimensions its ellipsis stands for.
Labels parse(std::string_view text, int64_t ndim, int64_t* dots) {
  Labels labels;
  int64_t named = 0;
  size_t ellipsis = text.find("...");
  for (char c : text) named += is_letter(c);
  *dots = ellipsis == text.npos ? 0 : ndim - named;
  want(*dots >= 0 && named + *dots == ndim, "'", text, "' names ", named,
       " dimensions, the operand has ", ndim);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == ellipsis) {
      for (int64_t k = *dots; k-- > 0;) labels.push_back(kDots + Label(k));
      i += 2;
    } else {
      want(is_letter(text[i]), "'", text, "' has a '", text.substr(i, 1), "' that is no letter");
      labels.push_back(text[i]);
    }
  }
  return labels;
}

// A label that occurs twice in one operand takes its diagonal.
Term without_repeats(Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = i + 1; j < term.labels.size(); ++j)
      if (term.labels[i] == term.labels[j]) {
        want(term.t.size(i) == term.t.size(j), "'", letters(term.labels),
             "' repeats a letter for sizes ", term.t.size(i), " and ", term.t.size(j));
        Label same = term.labels[i];
        term.t = diagonal(term.t, 0, int64_t(i), int64_t(j));
        term.labels.erase(term.labels.begin() + long(j));
        term.labels.erase(term.labels.begin() + long(i));
        term.labels.push_back(same);
        return without_repeats(std::move(term));
      }
  return term;
}

bool has(const Labels& labels, Label l) {
  return std::find(labels.begin(), labels.end(), l) != labels.end();
}

int64_t size_of(const Term& term, Label l) {
  auto at = std::find(term.labels.begin(), term.labels.end(), l);
  return at == term.labels.end() ? 1 : term.t.size(at - term.labels.begin());
}

Tensor in_order(const Term& term, const Labels& order) {
  Sizes dims;
  for (Label l : order)
    dims.push_back(std::find(term.labels.begin(), term.labels.end(), l) - term.labels.begin());
  return permute(term.t, dims);
}

// Sums a term over labels that nobody else has.
Term summed(Term term, const std::map<Label, int>& needed) {
  Sizes gone;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (needed.count(term.labels[i]))
      kept.push_back(term.labels[i]);
    else
      gone.push_back(int64_t(i));
  }
  if (!gone.empty()) term.t = sum(term.t, gone);
  term.labels = kept;
  return term;
}

// The same beside other operands: of one element there is no sum, which could have another dtype.
Term summed_beside(Term term, const std::map<Label, int>& needed) {
  for (size_t i = term.labels.size(); i-- > 0;) {
    if (term.t.size(int64_t(i)) != 1 || needed.count(term.labels[i])) continue;
    term.t = select(term.t, int64_t(i), 0);
    term.labels.erase(term.labels.begin() + long(i));
  }
  return summed(std::move(term), needed);
}

// A size of 1 broadcasts, so it is no partner of a sum; beside a size of 0 it is 0.
void drop_ones(Term& t, const Term& other) {
  for (size_t i = t.labels.size(); i-- > 0;) {
    const int64_t beside = size_of(other, t.labels[i]);
    if (t.t.size(int64_t(i)) != 1 || beside == 1) continue;
    if (beside == 0) {
      t.t = narrow(t.t, int64_t(i), 0, 0);
    } else {
      t.t = select(t.t, int64_t(i), 0);
      t.labels.erase(t.labels.begin() + long(i));
    }
  }
}

bool is_whole(const Tensor& t) { return !t.is_floating_point() && !t.is_complex(); }

// Element by element, along the labels of both and those of each.
Term multiplied(const Term& a, const Term& b) {
  Labels all = a.labels;
  for (Label l : b.labels)
    if (!has(a.labels, l)) all.push_back(l);
  const auto beside = [&](const Term& term) {
    Labels own;
    for (Label l : all)
      if (has(term.labels, l)) own.push_back(l);
    Tensor t = in_order(term, own);
    for (size_t i = 0; i < all.size(); ++i)
      if (!has(term.labels, all[i])) t = unsqueeze(t, int64_t(i));
    return t;
  };
  return {beside(a) * beside(b), all};
}

// One product: labels of both that are needed later are a batch, the others of both are summed by
// bmm.
Term contract(Term a, Term b, const std::map<Label, int>& needed) {
  drop_ones(a, b);
  drop_ones(b, a);
  std::map<Label, int> only_a = needed, only_b = needed;
  for (Label l : b.labels)
    if (size_of(b, l) != 1) only_a[l] = 1;
  for (Label l : a.labels)
    if (size_of(a, l) != 1) only_b[l] = 1;
  a = summed_beside(std::move(a), only_a);
  b = summed_beside(std::move(b), only_b);
  // Without a sum the operands may have any two dtypes.
  if (std::ranges::none_of(a.labels, [&](Label l) { return has(b.labels, l) && !needed.count(l); }))
    return multiplied(a, b);
  // Sums of whole numbers and bools are int64; beside one the other has to be so, too.
  if (is_whole(a.t) && is_whole(b.t) && a.t.dtype() != b.t.dtype()) {
    a.t = to(a.t, int64);
    b.t = to(b.t, int64);
  }
  Labels batch, inner, left, right;
  for (Label l : a.labels)
    (!has(b.labels, l) ? left : needed.count(l) ? batch : inner).push_back(l);
  for (Label l : b.labels)
    if (!has(a.labels, l)) right.push_back(l);
  Sizes shape;
  int64_t n = 1, m = 1, k = 1, r = 1;
  auto count = [&](const Labels& labels, const Term& t, int64_t* total, bool shown_in_result) {
    for (Label l : labels) {
      *total *= size_of(t, l);
      if (shown_in_result) shape.push_back(size_of(t, l));
    }
  };
  count(batch, a, &n, true);
  count(left, a, &m, true);
  count(inner, a, &k, false);
  count(right, b, &r, true);
  // Rows times columns of one element each: the products are summed where they lie. A sum of whole
  // numbers would be int64.
  if (m == 1 && r == 1 && left.empty() && right.empty() && n > 1 && !is_whole(a.t)) {
    Tensor made = a.t * in_order(b, a.labels);
    Sizes gone;
    Labels kept;
    for (size_t i = 0; i < a.labels.size(); ++i)
      has(inner, a.labels[i]) ? gone.push_back(int64_t(i)) : kept.push_back(a.labels[i]);
    return {gone.empty() ? made : sum(made, gone), kept};
  }
  Labels order_a = batch, order_b = batch, out = batch;
  order_a.insert(order_a.end(), left.begin(), left.end());
  order_a.insert(order_a.end(), inner.begin(), inner.end());
  order_b.insert(order_b.end(), inner.begin(), inner.end());
  order_b.insert(order_b.end(), right.begin(), right.end());
  out.insert(out.end(), left.begin(), left.end());
  out.insert(out.end(), right.begin(), right.end());
  Tensor made =
      bmm(reshape(in_order(a, order_a), {n, m, k}), reshape(in_order(b, order_b), {n, k, r}));
  return {reshape(made, shape), out};
}

std::string without_spaces(std::string_view s) {
  std::string out;
  std::copy_if(s.begin(), s.end(), std::back_inserter(out), [](char c) { return c != ' '; });
  return out;
}

struct Equation {
  std::vector<Term> terms;
  Labels out;
  std::map<Label, int64_t> sizes;

  Equation(std::string_view given, Tensors operands) {
    std::string text = without_spaces(given);
    size_t arrow = text.find("->");
    std::string_view inputs = std::string_view(text).substr(0, arrow);
    int64_t most = 0;
    size_t begin = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      want(begin <= inputs.size(), "'", given,
           "' has fewer terms than there are operands: ", operands.size());
      size_t end = std::min(inputs.find(',', begin), inputs.size());
      int64_t dots = 0;
      Labels labels = parse(inputs.substr(begin, end - begin), operands[i].ndim(), &dots);
      most = std::max(most, dots);
      for (Label l : labels) ++times_[l];
      terms.push_back(without_repeats({operands[i], labels}));
      begin = end + 1;
    }
    want(begin > inputs.size() && !terms.empty(), "'", given,
         "' has more terms than there are operands: ", operands.size());
    for (const Term& t : terms)
      for (size_t i = 0; i < t.labels.size(); ++i) {
        int64_t& size = sizes.try_emplace(t.labels[i], 1).first->second;
        int64_t here = t.t.size(int64_t(i));
        want(size == 1 || here == 1 || size == here, "'", letters({t.labels[i]}), "' has sizes ",
             size, " and ", here);
        size = size == 1 ? here : size;
      }
    if (arrow != text.npos)
      output(std::string_view(text).substr(arrow + 2), most);
    else
      implicit_output(most);
  }

 private:
  void output(std::string_view text, int64_t dots) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.substr(i, 3) == "...") {
        for (int64_t k = dots; k-- > 0;) out.push_back(kDots + Label(k));
        i += 2;
        continue;
      }
      want(sizes.count(text[i]), "the result names '", text.substr(i, 1),
           "', which no operand has");
      want(!has(out, text[i]), "the result names '", text.substr(i, 1), "' twice");
      out.push_back(text[i]);
    }
  }
  // Letters that occur once, in alphabetical order (capitals first), behind the ellipsis.
  void implicit_output(int64_t dots) {
    for (int64_t k = dots; k-- > 0;) out.push_back(kDots + Label(k));
    for (auto [label, times] : times_)
      if (label < kDots && times == 1) out.push_back(label);
  }
  std::map<Label, int> times_;
};

}  // namespace

aj_status* einsum_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want(b.tensors(1).size() > 0, "no operands are given");
    Equation e(b.text(0), b.tensors(1));
    std::map<Label, int> needed_out;
    for (Label l : e.out) needed_out[l] = 1;
    Term made = e.terms[0];
    for (size_t i = 1; i < e.terms.size(); ++i) {
      std::map<Label, int> needed = needed_out;
      for (size_t j = i + 1; j < e.terms.size(); ++j)
        for (Label l : e.terms[j].labels)
          if (size_of(e.terms[j], l) != 1) needed[l] = 1;
      made = contract(std::move(made), e.terms[i], needed);
    }
    const bool alone = e.terms.size() == 1;
    made = alone ? summed(std::move(made), needed_out) : summed_beside(std::move(made), needed_out);
    Sizes shape;
    for (Label l : e.out) {
      shape.push_back(e.sizes[l]);
      if (has(made.labels, l)) continue;
      made.t = unsqueeze(made.t, -1);
      made.labels.push_back(l);
    }
    b.ret(0, expand(in_order(made, e.out), shape));
  });
}

}  // namespace adjoin::ops
