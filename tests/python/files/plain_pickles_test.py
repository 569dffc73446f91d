"""tests/python/files/plain_pickles_test.py: what PyTorch's programs wrote by ``pickle`` itself is read by ``pickle`` itself."""

import base64
import subprocess
import sys
import textwrap
import zlib

import adjoin
import pytest
from adjoin import _tensor, _utils

# pickle.dumps of a dict of tensors, a parameter, a layer, an optimizer and a storage by PyTorch 2.15.
WRITTEN = (
    "c-q}qO;6)S7>=Eggs+8yx>ebJ-AXS}0tqB1R_to`;4N(zRmx>Gn%I-ryN)Ne$FQt~L=RBdPP=WH-"
    "g@Y<f29AT*Zzb`mD+baj!8nYqQ_uxh~IfUAJ6;FGw;hu?w3zjGVygR)_Ly0A%}u5FdCS42}R6tL%~;2Kw6RGT8I%ZqyakE5SM^nRIm{K;0_Ud8Mzc&s2"
    "$KQY8^2W0%~_v%VbXU*K_Vazdri=ljpyG`F`m{|NO5kd>;Fm_2x1R-3utACUwyP2||Z@z6OBiBDA;;V=h6&vmEUC`gwB>jO?gKQ0TlOp`ShWbL-"
    "6+Fore_m_K9a%`7}Q9`o}?u9=g4P_N?`j9e7KnCs1g1gk0g88cqO+#{Gc+gHXpUu)h0Oru)atk$+_^^ID!TJ}}HW-"
    "s!yMt+a^xv!wNXMScJR>P%yX7D=Mfsgy}3-"
    "<}!zugz7;;Aq+Lq8Qp_EcQ(d04+oOa{vb%ICibED{jwp<^;&@w2Cb0iNet?aG$0bL)0tSDyxAcVlKNTVuIxl*_foc4cFTTYWsYDHgcZQ&vxQ6pxvhM-"
    "6zim-<{4Oxo?a<YhwF+%(YjKuvjaI5x_aYNb}L4pF8}qAbAzW!gw6_G!}wX*-4hGpYAnoQEpfT!Pz*z6bwK@gA-"
    ">>Xq&7?X8=TmSRUp8zJocD$ZtmIKW-PNFZ#Tf0$}zYDR|+vr)(}BT_b1IA*6>7OT}py;0e`(bm1f4s2Z&hi}=w=V?TG6nHbTDkNuId;~=E_teqjd8ID3"
    "BA0|E*YOC3mi!a-1w`{3A<wiT3$WukUPqks`75u4aby0FI31fw&#hed9CUJPyai#sbyIJ}*lXSzPz^&r6NYYRXV*OTtvaS0917c*dg-Xv%H^^=({CUhS"
    "J)xx$n1>O+F`~bUPP^^-Bw}A?;($Rs3+M7A?0HIHWU&j-"
    "Uz;mTG)JXhy#e#fFPUF7eKe{j4xd^4Vv#FCq(VYb%&e99>0UyG`NOe8@4J5lkau<hz~{(*geEYAu=&!F;;?ENin0-"
    "{OEeim@(c_s);Pff`(pycd%i!?=_W%z6EjbI)aA7BNS00EYctIj)&R=vnYUPL+1-LVgm*(YVldxV@?->5+rCziBoJTg&j-"
    "q?Ed421BzskHjZ4TBuIAy@p$J?6)e2irCsoN)P;!Qvlj05NUUA(w4k&KS;WLg(opmWghxORAbl)$@ymF8_+9{R2{vu%UCWV?13fyp<;upHb`*kx_98x`"
    "jwE}L&nFYIRJO^BQU{qM6VY5^lQGN}Vr4{~fJVJgJW~o9+vJnIgYDPpO6>29jLqTx9_}A5>^B$ok9+n{7xvG45eCBYA-"
    "ot8sl0bn<yE$%%#br#O-c+BIM{VwVVNF-KTwA-1V;h*L86uulzQ8wG@fp9(ymQ|c0U2ggxm!bd808b-MLA*OM(Rf%4LQxZNhVU0FRUO+i>`)jILg<-"
    "=xY&vHvGk;WP0RV6W`U{dXx8nG$}^#94eGLOOwEsDGS>y0rA`X^*0Q5iRTLet(6wT-"
    "4@<>M{%d$;SSP2hB&okSqrEG4=UooM;wyXQ#k*{r?}#eeKD<tw~O7)VD^QIB^>!*nw@J!OvI++JB@>UM6*8-"
    "xa`L@wV_M%jfNCZCFOKlS}Ow3;bnMz0hO&qSAk|c$fM"
)


def test_a_pickle_of_pytorch_gives_tensors_layers_and_optimizers(tmp_path):
    (tmp_path / "written.pkl").write_bytes(zlib.decompress(base64.b85decode(WRITTEN)))
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import pickle, torch
        found = pickle.load(open("written.pkl", "rb"))
        assert found["view"].tolist() == [1.0, 4.0] and found["bf16"].dtype is torch.bfloat16
        assert found["complex"].tolist() == [1 - 2j] and found["uint16"].tolist() == [1, 1]
        assert found["leaf"].requires_grad and found["leaf"].is_leaf and not found["view"].requires_grad
        assert type(found["parameter"]) is torch.nn.Parameter and found["parameter"].note == 3
        assert found["layer"](torch.tensor([[1.0, 1.0]])).tolist() == [[3.5]]
        assert found["sparse"].is_sparse and found["sparse"].to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]
        assert found["meta"].is_meta and found["meta"].shape == (2, 3)
        assert found["storage"].tolist() == [0, 1, 2]
        kept = found["optimizer"].param_groups[0]["params"][0]
        assert kept is found["parameter"]
        kept.sum().backward()
        found["optimizer"].step()
        print(kept.tolist())
        """)
    )
    done = subprocess.run(
        [sys.executable, "-m", "adjoin.torch", "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0.5, 0.5]\n"


class Named(adjoin.Tensor):
    pass


class Counted(adjoin.Tensor):
    def __setstate__(self, state):
        self.count = state + 1


def test_hooks_attributes_and_classes_come_back():
    row = adjoin.arange(4.0)
    hooks = {0: lambda g: g * 3}
    x = _utils._rebuild_tensor_v2(row.storage(), 1, (2,), (2,), True, hooks)
    x.sum().backward()
    assert x.tolist() == [1.0, 3.0] and x.grad.tolist() == [3.0, 3.0]
    p = _utils._rebuild_parameter_with_state(row, False, {}, {"kind": "frozen"})
    assert p.kind == "frozen" and not p.requires_grad
    bits = _utils._rebuild_tensor_v3(row.untyped_storage(), 0, (2,), (1,), False, {}, adjoin.int32)
    assert bits.tolist() == [0, 0x3F800000]
    assert _utils._rebuild_tensor_v2(row.storage(), 0, (2,), (1,), False, None, {"neg": True}).tolist() == [0.0, -1.0]
    args = row.storage(), 0, (4,), (1,), False, {}
    named = _tensor._rebuild_from_type_v2(_utils._rebuild_tensor_v2, Named, args, {"note": "here"})
    assert type(named) is Named and named.note == "here" and named.tolist() == row.tolist()
    assert _tensor._rebuild_from_type_v2(_utils._rebuild_tensor_v2, Counted, args, 4).count == 5


def test_a_quantized_tensor_says_what_to_do():
    with pytest.raises(NotImplementedError, match=r"save dequantize\(\) of it with PyTorch"):
        _utils._rebuild_qtensor()
