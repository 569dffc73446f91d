// core/tape/view.hpp: views on the tape: geometry, replay after the base was rewritten,
// derivatives without a formula.
#pragma once
#include "core/tape/node.hpp"

namespace adjoin {

// Has the history of t's base been rewritten since t last looked?
inline bool view_is_stale(const aj_tensor* t) {
  return (t->obj.flags & AJ_TENSOR_VIEW) && priv(t).rebase != priv(priv(t).base).rebase;
}
// Gives a stale view its place on the base's present history; refused for views that cannot be
// replayed.
aj_status* view_refresh(aj_tensor* t);
aj_status* odd_view(
    const aj_tensor* t,
    bool direct);  // the error for views of kinds that may not be written or replayed

struct Geometry {
  std::vector<int64_t> shape, strides;
  uint8_t dtype = 0;
};
inline Geometry geometry(const aj_tensor* t) {
  Geometry g{{shape(t).begin(), shape(t).end()}, {}, priv(t).dtype};
  if (t->dl.strides) g.strides.assign(strides(t).begin(), strides(t).end());
  return g;
}
// A base and its view of which one has its memory already: the other gets it.
void settle_both(const aj_tensor* a, const aj_tensor* b);
inline int64_t bytes_between(const aj_tensor* from, const aj_tensor* to) {
  if ((from->obj.flags ^ to->obj.flags) & AJ_TENSOR_STRIDED) settle_both(from, to);
  return place(to) - place(from);
}

// `like` seen with view's geometry, which starts `offset` bytes after like's first element;
// recorded.
aj_status* look(aj_tensor* like, const Geometry& view, int64_t offset, aj_tensor** out);
// t, an alias with the place of a view, becomes that view of result 0 of made_base.
aj_status* strided_result(Node* made_base, const Geometry& base, const aj_tensor* t,
                          int64_t offset);

aj_status* view_apply(Node* n, aj_tensor* const* grad_out, aj_tensor** grad_in);
void view_step_free(ViewStep* v);
std::string_view view_step_name(const ViewStep* v);

}  // namespace adjoin
