//! adjoin.rs: Adjoin for Rust 2021, without crates: tensors and a function for every op. Written by `adjoin bindgen --lang rust`:
//! what stands above the ops was written by hand, the ops are those of the library that ran. Links libadjoin:
//! `-L $(adjoin config --libdir)`.
//!
//! An op's required arguments are arguments; what has a default is a field of OPTIONS in `op_with`. Errors of the library are
//! `Err`; a tensor is one counted pointer, released by Drop. What a callback panics with becomes an error of the call.
#![allow(dead_code, non_snake_case, clippy::all)] // some overloads are named after a type
use std::ffi::{c_void, CString};
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

// @INCLUDE contract.rs@
use sys::{Made, Str, NONE};

fn table<T>(name: &str) -> Option<&'static T> {
    let name = CString::new(name).ok()?;
    unsafe { (sys::aj_get_interface(name.as_ptr(), 1) as *const T).as_ref() }
}
macro_rules! tables { ($($name:ident: $kind:ty = $text:literal;)*) => { $(
    fn $name() -> &'static $kind {
        static TABLE: OnceLock<usize> = OnceLock::new();
        let at = *TABLE.get_or_init(|| table::<$kind>($text).expect("libadjoin has not this interface") as *const $kind as usize);
        unsafe { &*(at as *const $kind) }
    })* } }
tables! { core: sys::Core = "aj.core"; dispatch: sys::Dispatch = "aj.op"; autograd: sys::Autograd = "aj.autograd"; }

fn text(s: &str) -> Str {
    Str { data: s.as_ptr(), len: s.len() as u64 }
}
unsafe fn copied(s: Str) -> String {
    if s.len == 0 { return String::new(); }
    String::from_utf8_lossy(std::slice::from_raw_parts(s.data, s.len as usize)).into_owned()
}

/// What an op or a callback says went wrong; kind names a class of Python's.
#[derive(Debug, Clone)]
pub struct Error {
    pub code: i32,
    pub kind: String,
    pub message: String,
}
pub type Result<T> = std::result::Result<T, Error>;
impl Error {
    pub fn new(message: impl Into<String>) -> Error {
        Error { code: 3, kind: String::new(), message: message.into() }
    }
    fn status(self) -> Made {
        unsafe { (core().status_new)(self.code, text(&self.kind), text(&self.message), b"rust\0".as_ptr(), 0) }
    }
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Error {}
fn check(s: Made) -> Result<()> {
    if s.is_null() { return Ok(()); }
    unsafe {
        let c = core();
        let e = Error { code: (c.status_code)(s), kind: copied((c.status_kind)(s)), message: copied((c.status_message)(s)) };
        (c.status_free)(s);
        Err(e)
    }
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DType { pub code: u8, pub bits: u8, pub lanes: u16 }
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Device { pub kind: i32, pub number: i32 }
macro_rules! dtypes { ($($name:ident = $code:literal $bits:literal;)*) => {
    $(pub const $name: DType = DType { code: $code, bits: $bits, lanes: 1 };)*
    impl fmt::Display for DType {
        fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
            $(if *self == $name { return f.write_str(&stringify!($name).to_lowercase()); })*
            write!(f, "a dtype of {} bits", self.bits)
        }
    } } }
fn other_dtype(who: &str, is: DType, asked: DType) -> Error {
    Error::new(format!("{who}: the tensor is {is}, {asked} is asked for; convert it by to_with"))
}
dtypes! { INT8 = 0 8; INT16 = 0 16; INT32 = 0 32; INT64 = 0 64; UINT8 = 1 8; FLOAT16 = 2 16; FLOAT32 = 2 32; FLOAT64 = 2 64;
          BFLOAT16 = 4 16; COMPLEX64 = 5 64; COMPLEX128 = 5 128; BOOL = 6 8; }
pub fn device(name: &str) -> Result<Device> {
    let mut parts = name.splitn(2, ':');
    let mut d = Device { kind: 0, number: 0 };
    check(unsafe { (core().device_find)(text(parts.next().unwrap_or("")), &mut d.kind) })?;
    if let Some(n) = parts.next() {
        d.number = n.parse().map_err(|_| Error::new(format!("device: '{name}' is not NAME or NAME:NUMBER")))?;
    }
    Ok(d)
}

/// One counted pointer; a clone is the same tensor.
#[repr(transparent)]
pub struct Tensor(*mut sys::Tensor);
unsafe impl Send for Tensor {}
unsafe impl Sync for Tensor {}
impl Drop for Tensor {
    fn drop(&mut self) { unsafe { (core().release)(self.0.cast()) } }
}
impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        unsafe { (core().retain)(self.0.cast()) };
        Tensor(self.0)
    }
}
impl Tensor {
    /// Takes over a reference.
    pub unsafe fn steal(p: *mut sys::Tensor) -> Option<Tensor> { if p.is_null() { None } else { Some(Tensor(p)) } }
    pub fn get(&self) -> *mut sys::Tensor { self.0 }
    pub fn from_slice<T: Element>(values: &[T], shape: &[i64]) -> Result<Tensor> {
        if shape.iter().product::<i64>() != values.len() as i64 {
            return Err(Error::new(format!("from_slice: {} values do not fill the shape {shape:?}", values.len())));
        }
        let like = sys::DLTensor { data: std::ptr::null_mut(), device: device("cpu")?, ndim: shape.len() as i32, dtype: T::DTYPE,
                                   shape: shape.as_ptr(), strides: std::ptr::null(), byte_offset: 0 };
        let mut t = std::ptr::null_mut();
        unsafe {
            check((core().tensor_empty)(&like, 0, &mut t))?;
            let t = Tensor(t);
            check((core().tensor_copy_bytes)(t.0, values.as_ptr() as *mut c_void, std::mem::size_of_val(values) as u64, 0))?;
            Ok(t)
        }
    }
    /// The numbers of a dense tensor, from whichever device.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if self.dtype() != T::DTYPE { return Err(other_dtype("to_vec", self.dtype(), T::DTYPE)); }
        let mut out = vec![T::default(); self.numel() as usize];
        let bytes = std::mem::size_of_val(&out[..]) as u64;
        check(unsafe { (core().tensor_copy_bytes)(self.0, out.as_mut_ptr().cast(), bytes, 1) })?;
        Ok(out)
    }
    /// Overwrites a dense tensor's numbers.
    pub fn write<T: Element>(&self, values: &[T]) -> Result<()> {
        if self.dtype() != T::DTYPE { return Err(other_dtype("write", self.dtype(), T::DTYPE)); }
        let bytes = std::mem::size_of_val(values) as u64;
        check(unsafe { (core().tensor_copy_bytes)(self.0, values.as_ptr() as *mut c_void, bytes, 0) })
    }
    pub fn numel(&self) -> i64 { unsafe { (core().tensor_numel)(self.0) } }
    pub fn dtype(&self) -> DType { unsafe { (*self.0).dl.dtype } }
    pub fn device(&self) -> Device { unsafe { (*self.0).dl.device } }
    pub fn shape(&self) -> &[i64] {
        let dl = unsafe { &(*self.0).dl };
        if dl.ndim == 0 { return &[]; }
        unsafe { std::slice::from_raw_parts(dl.shape, dl.ndim as usize) }
    }
    pub fn requires_grad(self, on: bool) -> Result<Tensor> {
        check(unsafe { (autograd().set_requires_grad)(self.0, on as i32) })?;
        Ok(self)
    }
    pub fn grad(&self) -> Result<Option<Tensor>> {
        let mut g = std::ptr::null_mut();
        unsafe {
            check((autograd().grad)(self.0, &mut g))?;
            Ok(Tensor::steal(g))
        }
    }
    pub fn set_grad(&self, g: Option<&Tensor>) -> Result<()> {
        check(unsafe { (autograd().set_grad)(self.0, g.map_or(std::ptr::null_mut(), |t| t.0)) })
    }
    pub fn backward(&self) -> Result<()> {
        let none = std::ptr::null();
        let run = sys::Backward { struct_size: std::mem::size_of::<sys::Backward>() as u32, flags: 0, roots: &self.0, grads: none,
                                  inputs: none, out: none, counts: [1, 0] };
        check(unsafe { (autograd().backward)(&run) })
    }
}
pub trait Element: Copy + Default { const DTYPE: DType; }
macro_rules! elements { ($($t:ty = $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = $d; })* } }
elements! { f32 = FLOAT32, f64 = FLOAT64, i8 = INT8, i16 = INT16, i32 = INT32, i64 = INT64, u8 = UINT8 }

pub fn manual_seed(seed: u64) -> Result<()> { check(unsafe { (core().manual_seed)(seed) }) }
pub fn load_plugin(path: &str) -> Result<()> {
    let path = CString::new(path).map_err(|_| Error::new("load_plugin: a path has no NUL"))?;
    check(unsafe { sys::aj_load_plugin(path.as_ptr()) })
}
/// A captured program (.aj): `Program::load("model.aj")?.run(&[&x])?`.
pub struct Program(Object);
impl Program {
    fn table() -> Result<&'static sys::Programs> {
        table("x.program").ok_or_else(|| Error::new("Program: libaj_graph.so is not installed"))
    }
    pub fn load(path: &str) -> Result<Program> {
        let mut made = std::ptr::null();
        check(unsafe { (Self::table()?.load)(text(path), &mut made) })?;
        Ok(Program(Object(made)))
    }
    /// All results.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (programs, given) = (Self::table()?, list(inputs));
        let mut made = vec![std::ptr::null_mut(); unsafe { (programs.count)(self.0 .0, 1) } as usize];
        check(unsafe { (programs.run)(self.0 .0, given.as_ptr(), given.len() as u32, 0, made.as_mut_ptr(), made.len() as u32) })?;
        Ok(made.into_iter().filter_map(|t| unsafe { Tensor::steal(t) }).collect())
    }
}
/// Without recording.
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(i32);
    impl Drop for Restore { fn drop(&mut self) { unsafe { (autograd().set_grad_mode)(self.0) }; } }
    let _before = Restore(unsafe { (autograd().set_grad_mode)(0) });
    f()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar { Bool(bool), Int(i64), Float(f64), Complex([f64; 2]) }
#[derive(Clone)]
pub enum Operand<'a> { Tensor(&'a Tensor), Number(Scalar) }
impl<'a> From<&'a Tensor> for Operand<'a> { fn from(t: &'a Tensor) -> Self { Operand::Tensor(t) } }
macro_rules! numbers { ($($t:ty => $kind:ident $as:ty),*) => { $(
    impl From<$t> for Scalar { fn from(x: $t) -> Self { Scalar::$kind(x as $as) } }
    impl<'a> From<$t> for Operand<'a> { fn from(x: $t) -> Self { Operand::Number(Scalar::$kind(x as $as)) } })* } }
numbers! { bool => Bool bool, i32 => Int i64, i64 => Int i64, f32 => Float f64, f64 => Float f64 }
impl<'a> From<Scalar> for Operand<'a> { fn from(x: Scalar) -> Self { Operand::Number(x) } }

/// An argument as the contract has it; it borrows.
pub trait Argument { fn value(&self) -> sys::Value; }
fn v(tag: i32, aux: usize, v: sys::Content) -> sys::Value { sys::Value { tag, aux: aux as u32, v } }
macro_rules! arguments { ($($t:ty: |$x:ident| $e:expr;)*) => { $(impl Argument for $t { fn value(&self) -> sys::Value { let $x = self; $e } })* } }
arguments! {
    bool: |x| v(1, 0, sys::Content { i: *x as i64 });
    i64: |x| v(2, 0, sys::Content { i: *x });
    f64: |x| v(3, 0, sys::Content { f: *x });
    DType: |x| v(5, 0, sys::Content { dtype: *x });
    Device: |x| v(6, 0, sys::Content { device: *x });
    &str: |x| v(7, x.len(), sys::Content { ptr: x.as_ptr().cast() });
    &[i64]: |x| v(8, x.len(), sys::Content { ptr: x.as_ptr().cast() });
    &[f64]: |x| v(9, x.len(), sys::Content { ptr: x.as_ptr().cast() });
    &[bool]: |x| v(10, x.len(), sys::Content { ptr: x.as_ptr().cast() });
    Vec<*mut sys::Tensor>: |x| v(11, x.len(), sys::Content { ptr: x.as_ptr().cast() });
    &Tensor: |x| v(64, 0, sys::Content { tensor: x.0 });
    Scalar: |x| match x {
        Scalar::Bool(b) => b.value(),
        Scalar::Int(i) => i.value(),
        Scalar::Float(f) => f.value(),
        Scalar::Complex(z) => v(4, 0, sys::Content { c128: z.as_ptr() }),
    };
    Operand<'_>: |x| match x { Operand::Tensor(t) => t.value(), Operand::Number(n) => n.value() };
    Layout: |x| v(12, 0, sys::Content { i: x.0 });
    MemoryFormat: |x| v(13, 0, sys::Content { i: x.0 });
    &Object: |x| v(x.tag(), 0, sys::Content { ptr: x.0 });
    Unknown: |x| match *x {};
}
impl<T: Argument> Argument for Option<T> { fn value(&self) -> sys::Value { self.as_ref().map_or(NONE, |x| x.value()) } }
#[derive(Clone, Copy)]
pub struct Layout(pub i64);
#[derive(Clone, Copy)]
pub struct MemoryFormat(pub i64);
pub const CONTIGUOUS: MemoryFormat = MemoryFormat(0);
pub const CHANNELS_LAST: MemoryFormat = MemoryFormat(2);
/// What an op gives that is neither tensor nor number: a generator, a stream, a function, an object of a plugin's. It goes back
/// into ops as it is; which of them is wanted there, the library tells. One counted pointer.
pub struct Object(*const c_void);
unsafe impl Send for Object {}
unsafe impl Sync for Object {}
impl Drop for Object {
    fn drop(&mut self) { unsafe { (core().release)(self.0 as *mut c_void) } }
}
impl Clone for Object {
    fn clone(&self) -> Object {
        unsafe { (core().retain)(self.0 as *mut c_void) };
        Object(self.0)
    }
}
impl Object {
    fn tag(&self) -> i32 {
        let kind = unsafe { (*(self.0 as *const sys::Object)).kind };
        if kind < 256 { kind } else { 71 } // registered types have one tag
    }
}
/// An argument of a kind that this binding has no form for: there is no such value, only None.
#[derive(Clone, Copy)]
pub enum Unknown {}
fn list(tensors: &[&Tensor]) -> Vec<*mut sys::Tensor> { tensors.iter().map(|t| t.0).collect() }
fn holes(tensors: &[Option<&Tensor>]) -> Vec<*mut sys::Tensor> {
    tensors.iter().map(|t| t.map_or(std::ptr::null_mut(), |t| t.0)).collect()
}

/// A result as Rust has it; it is owned.
pub trait Outcome: Sized { unsafe fn own(v: sys::Value) -> Result<Self>; }
unsafe fn drop_value(v: sys::Value) { if v.tag >= 64 { (core().release)(v.v.ptr as *mut c_void) } }
unsafe fn not_a<T>(x: sys::Value, wanted: &str) -> Result<T> {
    drop_value(x);
    Err(Error::new(if x.tag == 0 { "this result is none".into() } else { format!("this result is no {wanted}, its tag is {}", x.tag) }))
}
macro_rules! outcomes { ($($t:ty: $wanted:literal |$x:ident| $($tag:pat => $e:expr),*;)*) => {
    $(impl Outcome for $t { unsafe fn own($x: sys::Value) -> Result<$t> { match $x.tag { $($tag => Ok($e),)* _ => not_a($x, $wanted) } } })* } }
outcomes! {
    Tensor: "tensor" |x| 64 => Tensor(x.v.tensor);
    Scalar: "number" |x| 1 => Scalar::Bool(x.v.i != 0), 2 => Scalar::Int(x.v.i), 3 => Scalar::Float(x.v.f), 67 => complex_of(x)?;
    bool: "bool" |x| 1 => x.v.i != 0;
    i64: "whole number" |x| 2 => x.v.i;
    f64: "float" |x| 3 => x.v.f;
    DType: "dtype" |x| 5 => x.v.dtype;
    Device: "device" |x| 6 => x.v.device;
    Layout: "layout" |x| 12 => Layout(x.v.i);
    MemoryFormat: "memory format" |x| 13 => MemoryFormat(x.v.i);
    String: "string" |x| 65 => { let s = copied((core().string_get)(x.v.ptr)); drop_value(x); s };
    Object: "object" |x| 64.. => Object(x.v.ptr);
}
unsafe fn complex_of(x: sys::Value) -> Result<Scalar> {
    let mut z = [0.0; 2];
    let [re, im] = &mut z;
    let got = check((core().complex_get)(x.v.ptr, re, im));
    drop_value(x);
    got.map(|_| Scalar::Complex(z))
}
impl<T: Outcome> Outcome for Option<T> {
    unsafe fn own(x: sys::Value) -> Result<Self> { if x.tag == 0 { Ok(None) } else { T::own(x).map(Some) } }
}
impl<T: Outcome> Outcome for Vec<T> {
    unsafe fn own(x: sys::Value) -> Result<Self> {
        if x.tag != 66 { return not_a(x, "list"); }
        let mut n = 0;
        let items = (core().list_get)(x.v.ptr, &mut n);
        let own = |item: sys::Value| {
            if item.tag >= 64 { (core().retain)(item.v.ptr as *mut c_void); }
            T::own(item)
        };
        let all = (0..n as usize).map(|i| own(*items.add(i))).collect();
        drop_value(x);
        all
    }
}

struct Op { name: &'static str, at: AtomicPtr<c_void> }
impl Op {
    const fn new(name: &'static str) -> Op { Op { name, at: AtomicPtr::new(std::ptr::null_mut()) } }
    fn get(&self) -> Result<*const c_void> {
        let mut at = self.at.load(Ordering::Relaxed);
        if at.is_null() {
            at = unsafe { (dispatch().find_op)(text(self.name)) } as *mut c_void;
            if at.is_null() { return Err(Error::new(format!("there is no op '{}'; was its plugin loaded?", self.name))); }
            self.at.store(at, Ordering::Relaxed);
        }
        Ok(at)
    }
}
fn run<const N: usize>(op: &Op, args: &[sys::Value], into: sys::Value) -> Result<[sys::Value; N]> {
    let mut rets = [NONE; N];
    if N > 0 { rets[0] = into; }
    check(unsafe { (dispatch().call)(op.get()?, args.as_ptr(), args.len() as u32, rets.as_mut_ptr(), N as u32) })?;
    Ok(rets)
}

/// An op of your own: out (made, of argument 0's shape and dtype) = kernel(args), gradient of argument 0 = vjp(grad, args).
pub struct Definition {
    pub schema: &'static str,
    pub doc: &'static str,
    pub args: i32,
    pub kernel: fn(args: &[sys::Value], out: &Tensor) -> Result<()>,
    pub vjp: fn(grad: &Tensor, args: &[sys::Value]) -> Result<Tensor>,
}
/// An argument that is a tensor, borrowed from the call.
pub fn tensor_of(v: &sys::Value) -> &Tensor { unsafe { &*(&v.v.tensor as *const *mut sys::Tensor as *const Tensor) } }
fn guarded(f: impl FnOnce() -> Result<()>) -> Made {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(e)) => e.status(),
        Err(said) => {
            let text = said.downcast_ref::<String>().map(|s| s.as_str()).or(said.downcast_ref::<&str>().copied());
            Error::new(format!("a callback in Rust panicked: {}", text.unwrap_or("no words"))).status()
        }
    }
}
unsafe extern "C" fn infer(_: *mut c_void, call: *mut sys::Call) -> Made {
    let x = &(*(*(*call).args).v.tensor).dl;
    (dispatch().declare)(call, 0, x.dtype, x.ndim, x.shape, std::ptr::null())
}
unsafe extern "C" fn kernel(this: *mut c_void, call: *mut sys::Call) -> Made {
    let (d, c) = (&*(this as *const Definition), &*call);
    guarded(|| (d.kernel)(std::slice::from_raw_parts(c.args, c.nargs as usize), tensor_of(&*c.rets)))
}
unsafe extern "C" fn vjp(this: *mut c_void, call: *mut sys::GradCall) -> Made {
    let (d, c) = (&*(this as *const Definition), &*call);
    guarded(|| {
        if (*c.grad_out).is_null() { return Ok(()); }
        let made = (d.vjp)(&*(c.grad_out as *const Tensor), std::slice::from_raw_parts(c.saved, c.nsaved as usize))?;
        *c.grad_in = made.0;
        std::mem::forget(made);
        Ok(())
    })
}
unsafe extern "C" fn init(this: *mut c_void, env: *const sys::Env) -> Made {
    let (d, r) = (&*(this as *const Definition), (*env).registrar);
    let (empty, none) = (text(""), std::ptr::null());
    let name = text(d.schema.split('(').next().unwrap_or(""));
    let saves: Vec<sys::Save> = (0..d.args).map(|index| sys::Save { what: 0, index, only_for: 0 }).collect();
    let op = sys::OpDef { struct_size: std::mem::size_of::<sys::OpDef>() as u32, flags: 0, infer, body: none, this,
                          texts: [text(d.schema), text(d.doc), empty, empty, empty] };
    let k = sys::KernelDef { struct_size: std::mem::size_of::<sys::KernelDef>() as u32, flags: 0, texts: [name, text("cpu"), empty],
                             dtypes: 0, priority: 0, reserved: 0, run: kernel, this, can_run: none };
    let g = sys::VjpDef { struct_size: std::mem::size_of::<sys::VjpDef>() as u32, flags: 0, op: name, save: saves.as_ptr(),
                          nsave: saves.len() as u32, reserved: 0, save_more: none, vjp, this, others: [none; 3] };
    for step in [0, 1, 2] {
        let s = match step {
            0 => (dispatch().def_op)(r, &op),
            1 => (dispatch().def_kernel)(r, &k),
            _ => (autograd().def_vjp)(r, &g),
        };
        if !s.is_null() { return s; }
    }
    std::ptr::null_mut()
}
/// Registers the op under a plugin name of yours; it stays, with its functions, as long as the process.
pub fn define(plugin: &str, definition: &'static Definition) -> Result<()> {
    let t = table::<sys::Definitions>("x.plugins").ok_or_else(|| Error::new("this libadjoin has no x.plugins"))?;
    check(unsafe { (t.define)(text(plugin), init, definition as *const Definition as *mut c_void) })
}
/// Any op by name, with values: the first result.
pub fn call(name: &'static str, args: &[&dyn Argument]) -> Result<Tensor> {
    let values: Vec<sys::Value> = args.iter().map(|a| a.value()).collect();
    let rets = run::<1>(&Op::new(name), &values, NONE)?;
    unsafe { Outcome::own(rets[0]) }
}

// @OPS@
