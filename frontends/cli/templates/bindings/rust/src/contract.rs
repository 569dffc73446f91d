// contract.rs: the contract in Rust; `adjoin bindgen` puts it into adjoin.rs.
/// The contract, as far as it is used here.
pub mod sys {
    use std::ffi::c_void;
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Str {
        pub data: *const u8,
        pub len: u64,
    }
    #[repr(C)]
    pub struct DLTensor {
        pub data: *mut c_void,
        pub device: super::Device,
        pub ndim: i32,
        pub dtype: super::DType,
        pub shape: *const i64,
        pub strides: *const i64,
        pub byte_offset: u64,
    }
    #[repr(C)]
    pub struct Object {
        pub refs: u64,
        pub kind: i32,
        pub flags: u32,
    }
    #[repr(C)]
    pub struct Tensor {
        pub refs: u64,
        pub kind: i32,
        pub flags: u32,
        pub dl: DLTensor,
        pub keys: u64,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub union Content {
        pub i: i64,
        pub f: f64,
        pub c128: *const f64,
        pub dtype: super::DType,
        pub device: super::Device,
        pub tensor: *mut Tensor,
        pub ptr: *const c_void,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Value {
        pub tag: i32,
        pub aux: u32,
        pub v: Content,
    }
    pub const NONE: Value = Value { tag: 0, aux: 0, v: Content { i: 0 } };
    pub enum Status {}
    pub type Made = *mut Status;
    type Unused = *const c_void;
    #[repr(C)]
    pub struct Core {
        pub struct_size: u32,
        pub minor: u32,
        pub status_new: unsafe extern "C" fn(i32, Str, Str, *const u8, u64) -> Made,
        pub status_with_cause: Unused,
        pub status_code: unsafe extern "C" fn(*const Status) -> i32,
        pub status_kind: unsafe extern "C" fn(*const Status) -> Str,
        pub status_message: unsafe extern "C" fn(*const Status) -> Str,
        pub where_and_cause: [Unused; 2],
        pub status_free: unsafe extern "C" fn(*mut Status),
        pub retain: unsafe extern "C" fn(*mut c_void),
        pub release: unsafe extern "C" fn(*mut c_void),
        pub types: [Unused; 6],
        pub string_get: unsafe extern "C" fn(*const c_void) -> Str,
        pub list_new: Unused,
        pub list_get: unsafe extern "C" fn(*const c_void, *mut u32) -> *const Value,
        pub complex_new: Unused,
        pub complex_get: unsafe extern "C" fn(*const c_void, *mut f64, *mut f64) -> Made,
        pub functions_streams_and_dtypes: [Unused; 11],
        pub tensor_empty: unsafe extern "C" fn(*const DLTensor, u64, *mut *mut Tensor) -> Made,
        pub views: [Unused; 9],
        pub tensor_copy_bytes: unsafe extern "C" fn(*mut Tensor, *mut c_void, u64, i32) -> Made,
        pub tensor_numel: unsafe extern "C" fn(*const Tensor) -> i64,
        pub frontends_and_threads: [Unused; 12],
        pub device_find: unsafe extern "C" fn(Str, *mut i32) -> Made,
        pub devices: [Unused; 9],
        pub generators: [Unused; 5],
        pub manual_seed: unsafe extern "C" fn(u64) -> Made,
    }
    #[repr(C)]
    pub struct Dispatch {
        pub struct_size: u32,
        pub minor: u32,
        pub def_op: unsafe extern "C" fn(*mut c_void, *const OpDef) -> Made,
        pub def_kernel: unsafe extern "C" fn(*mut c_void, *const KernelDef) -> Made,
        pub keys: [Unused; 3],
        pub find_op: unsafe extern "C" fn(Str) -> *const c_void,
        pub call: unsafe extern "C" fn(*const c_void, *const Value, u32, *mut Value, u32) -> Made,
        pub redispatch: Unused,
        pub declare: unsafe extern "C" fn(*mut Call, u32, super::DType, i32, *const i64, *const i64) -> Made,
    }
    #[repr(C)]
    pub struct Autograd {
        pub struct_size: u32,
        pub minor: u32,
        pub def_vjp: unsafe extern "C" fn(*mut c_void, *const VjpDef) -> Made,
        pub save_and_mode: [Unused; 2],
        pub set_grad_mode: unsafe extern "C" fn(i32) -> i32,
        pub modes: [Unused; 3],
        pub set_requires_grad: unsafe extern "C" fn(*mut Tensor, i32) -> Made,
        pub grad: unsafe extern "C" fn(*mut Tensor, *mut *mut Tensor) -> Made,
        pub set_grad: unsafe extern "C" fn(*mut Tensor, *mut Tensor) -> Made,
        pub retain: [Unused; 2],
        pub detach: unsafe extern "C" fn(*mut Tensor, *mut *mut Tensor) -> Made,
        pub data: [Unused; 4],
        pub backward: unsafe extern "C" fn(*const Backward) -> Made,
    }
    #[repr(C)]
    pub struct Programs {
        pub struct_size: u32,
        pub minor: u32,
        pub capture_and_text: [Unused; 10],
        pub load: unsafe extern "C" fn(Str, *mut *const c_void) -> Made,
        pub count: unsafe extern "C" fn(*const c_void, i32) -> u32,
        pub weights: [Unused; 4],
        pub run: unsafe extern "C" fn(*const c_void, *const *mut Tensor, u32, u32, *mut *mut Tensor, u32) -> Made,
    }
    #[repr(C)]
    pub struct Backward {
        pub struct_size: u32,
        pub flags: u32,
        pub roots: *const *mut Tensor,
        pub grads: Unused,
        pub inputs: Unused,
        pub out: Unused,
        pub counts: [u32; 2],
    }
    #[repr(C)]
    pub struct Call {
        pub struct_size: u32,
        pub flags: u32,
        pub core: Unused,
        pub op: Unused,
        pub args: *const Value,
        pub rets: *mut Value,
        pub nargs: u32,
        pub nrets: u32,
    }
    #[repr(C)]
    pub struct GradCall {
        pub struct_size: u32,
        pub flags: u32,
        pub tables: [Unused; 3],
        pub saved: *const Value,
        pub grad_out: *const *mut Tensor,
        pub grad_in: *mut *mut Tensor,
        pub needs: *const u8,
        pub payload: *mut c_void,
        pub nsaved: u32,
        pub ngrad_out: u32,
        pub ngrad_in: u32,
        pub reserved: u32,
    }
    pub type Kernel = unsafe extern "C" fn(*mut c_void, *mut Call) -> Made;
    pub type Vjp = unsafe extern "C" fn(*mut c_void, *mut GradCall) -> Made;
    #[repr(C)]
    pub struct OpDef {
        pub struct_size: u32,
        pub flags: u32,
        pub texts: [Str; 5],
        pub infer: Kernel,
        pub body: Unused,
        pub this: *mut c_void,
    }
    #[repr(C)]
    pub struct KernelDef {
        pub struct_size: u32,
        pub flags: u32,
        pub texts: [Str; 3],
        pub dtypes: u64,
        pub priority: i32,
        pub reserved: u32,
        pub run: Kernel,
        pub this: *mut c_void,
        pub can_run: Unused,
    }
    #[repr(C)]
    pub struct Save {
        pub what: i32,
        pub index: i32,
        pub only_for: u64,
    }
    #[repr(C)]
    pub struct VjpDef {
        pub struct_size: u32,
        pub flags: u32,
        pub op: Str,
        pub save: *const Save,
        pub nsave: u32,
        pub reserved: u32,
        pub save_more: Unused,
        pub vjp: Vjp,
        pub this: *mut c_void,
        pub others: [Unused; 3],
    }
    #[repr(C)]
    pub struct Env {
        pub struct_size: u32,
        pub minor: u32,
        pub tables: [Unused; 2],
        pub registrar: *mut c_void,
    }
    #[repr(C)]
    pub struct Definitions {
        pub struct_size: u32,
        pub minor: u32,
        pub replace: Unused,
        pub define: unsafe extern "C" fn(Str, unsafe extern "C" fn(*mut c_void, *const Env) -> Made, *mut c_void) -> Made,
    }
    #[link(name = "adjoin")]
    extern "C" {
        pub fn aj_get_interface(name: *const std::os::raw::c_char, major: u32) -> *const c_void;
        pub fn aj_load_plugin(path: *const std::os::raw::c_char) -> Made;
    }
}
