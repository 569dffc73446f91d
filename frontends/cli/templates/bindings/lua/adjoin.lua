-- adjoin.lua: Adjoin for LuaJIT: tensors and a function for every op. Written by `adjoin bindgen --lang lua`: what stands above
-- the ops was written by hand, the ops are those of the library that ran. The folder of libadjoin.so is found by the linker, or
-- named by ADJOIN_LIB.
--
-- local aj = require "adjoin"
-- local x = aj.randn({3, 4}):requires_grad_()
-- (x * x):sum():backward(); print(x:grad())
--
-- nil stands for what is not given. Dimensions count from 0, as in every language of Adjoin. Errors are errors of Lua. A complex
-- number is LuaJIT's own (2i; z.re, z.im). A generator, stream, function or object of a plugin's goes from op to op as it came.
local ffi = require "ffi"

ffi.cdef [[
typedef struct { const char* data; uint64_t len; } aj_str;
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape, *strides; uint64_t byte_offset;
} DLTensor;
typedef struct { uint64_t refs_private; int32_t type; uint32_t flags; } aj_object;
typedef struct { aj_object obj; DLTensor dl; uint64_t keys; } aj_tensor;
typedef struct { aj_tensor* p; } aj_handle; // a struct, for Lua adds numbers to pointers by itself
typedef struct { aj_object* p; } aj_counted; // what is counted, but no tensor
typedef struct {
  int32_t tag; uint32_t aux;
  union {
    int64_t i; double f; const double* c128; const char* str; const int64_t* ints; const double* floats;
    const uint8_t* bools; aj_tensor* const* tensors; DLDataType dtype; DLDevice device; aj_tensor* tensor;
    aj_object* object; const void* ptr;
  } v;
} aj_value;
typedef struct { uint32_t struct_size, index; DLDataType dtype; uint32_t bytes; int32_t dtype_class, promotes; aj_str name; } aj_dtype_info;
typedef struct {
  uint32_t struct_size, flags; aj_tensor *const *roots, *const *grads, *const *inputs; aj_tensor** out; uint32_t nroots, ninputs;
} aj_backward;
typedef struct aj_status aj_status;
typedef struct {
  uint32_t struct_size, minor;
  void *status_new, *status_with_cause, *status_code;
  aj_str (*status_kind)(const aj_status*);
  aj_str (*status_message)(const aj_status*);
  void *status_where, *status_cause;
  void (*status_free)(aj_status*);
  void (*retain)(void*);
  void (*release)(void*);
  void *type_register, *type_find;
  aj_str (*type_name)(int32_t);
  void *object_new, *object_payload, *string_new;
  aj_str (*string_get)(const aj_object*);
  void* list_new;
  const aj_value* (*list_get)(const aj_object*, uint32_t*);
  void* complex_new;
  aj_status* (*complex_get)(const aj_object*, double*, double*);
  void *function_new, *function_call, *stream_new, *stream_get, *dtype_register;
  aj_status* (*dtype_info)(DLDataType, aj_dtype_info*);
  aj_status* (*dtype_find)(aj_str, DLDataType*);
  void *dtype_promote, *dtype_can_cast, *default_dtype, *set_default_dtype;
  aj_status* (*tensor_empty)(const DLTensor*, uint64_t, aj_tensor**);
  void *tensor_view, *tensor_from_memory, *tensor_from_dlpack, *tensor_to_dlpack, *tensor_version, *tensor_bump_version;
  void *tensor_storage, *tensor_resize, *tensor_set;
  aj_status* (*tensor_copy_bytes)(aj_tensor*, void*, uint64_t, int32_t);
  int64_t (*tensor_numel)(const aj_tensor*);
  void *tensor_unique, *frontend_register, *frontend_word, *set_frontend_word, *set_line, *get_line, *parallel_for;
  int32_t (*num_threads)(void);
  aj_status* (*set_num_threads)(int32_t);
  void *thread_index, *interrupted, *log;
  aj_status* (*device_find)(aj_str, int32_t*);
  aj_str (*device_name)(int32_t);
  void *device_count, *device_synchronize, *stream_current, *stream_set, *memory_stats, *memory_release, *memory_limit;
  void *memory_reset_peak, *generator_new, *generator_default, *generator_get, *generator_set, *generator_draw;
  aj_status* (*manual_seed)(uint64_t);
} aj_core;
typedef struct {
  uint32_t struct_size, minor;
  void *def_op, *def_kernel, *def_fallback, *def_key, *key_mask;
  const void* (*find_op)(aj_str);
  aj_status* (*call)(const void*, const aj_value*, uint32_t, aj_value*, uint32_t);
} aj_dispatch;
typedef struct {
  uint32_t struct_size, minor;
  void *def_vjp, *save, *grad_mode;
  int32_t (*set_grad_mode)(int32_t);
  void *inference_mode, *set_inference_mode, *set_anomaly_mode;
  aj_status* (*set_requires_grad)(aj_tensor*, int32_t);
  aj_status* (*grad)(aj_tensor*, aj_tensor**);
  aj_status* (*set_grad)(aj_tensor*, aj_tensor*);
  void *retain_grad, *retains_grad;
  aj_status* (*detach)(aj_tensor*, aj_tensor**);
  void *detach_in_place, *data, *set_data, *base;
  aj_status* (*backward)(const aj_backward*);
} aj_autograd;
typedef struct {
  uint32_t struct_size, minor;
  void *begin, *input, *param, *end_, *cancel, *capturing, *parse, *text, *source, *save;
  aj_status* (*load)(aj_str, aj_object**);
  uint32_t (*count)(const aj_object*, int32_t);
  void *at, *form, *weight, *set_weight;
  aj_status* (*run)(aj_object*, aj_tensor* const*, uint32_t, uint32_t, aj_tensor**, uint32_t);
} aj_programs;
const void* aj_get_interface(const char*, uint32_t);
aj_status* aj_load_plugin(const char*);
void* dlopen(const char*, int);
]]

local folder = os.getenv("ADJOIN_LIB")
local file = folder and folder .. "/libadjoin.so" or "libadjoin.so"
ffi.C.dlopen(file, 0x1002) -- now, and for good: Lua would unmap it at its end, with threads in it
local found, lib = pcall(ffi.load, file)
if not found then error(lib .. "; name its folder: export ADJOIN_LIB=$(adjoin config --libdir)", 0) end
local core = ffi.cast("const aj_core*", lib.aj_get_interface("aj.core", 1))
local dispatch = ffi.cast("const aj_dispatch*", lib.aj_get_interface("aj.op", 1))
local autograd = ffi.cast("const aj_autograd*", lib.aj_get_interface("aj.autograd", 1))

local M, Tensor, put, none = {}, {}, {}, {}
local NONE, BOOL, INT, FLOAT, DTYPE, DEVICE, STRING, INTS, FLOATS, BOOLS, TENSORS = 0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11
local COMPLEX, LAYOUT, MEMORY_FORMAT, TENSOR, STRING_OBJ, LIST, COMPLEX_OBJ, OBJECT, DYNAMIC = 4, 12, 13, 64, 65, 66, 67, 71, 256
local args, Handle, Counted = ffi.typeof("aj_value[?]"), ffi.typeof("aj_handle"), ffi.typeof("aj_counted")
local Complex = ffi.typeof("complex")
M.Tensor = Tensor

local function str(s) return ffi.new("aj_str", s, #s) end
local function text(s) return ffi.string(s.data, s.len) end

-- A status is an error of Lua, at the line of who called into this file.
local function check(status, level)
  if status == nil then return end
  local message = text(core.status_message(status))
  core.status_free(status)
  error(message, (level or 2) + 1)
end

-- Tensors are released by the collector, which does not see how large they are: so it is told to hurry.
local made, limit = 0, 64 * 2 ^ 20
local function own(t)
  if t == nil then return nil end
  made = made + 64 + tonumber(core.tensor_numel(t)) * t.dl.dtype.bits / 8
  if made > limit then
    made = 0
    collectgarbage()
  end
  return Handle(t) -- whose __gc releases it
end

local function is_tensor(x) return ffi.istype(Handle, x) end

-- What a frame points to, until the call has ended. The compiler forgets a table that nobody can see, and what is in it.
local held
local function keep()
  held = {}
  return held
end

-- put.KIND(frame, place, keep, value, default)
local function wrong(place, wanted, got) error(("argument %d: %s expected, got %s"):format(place + 1, wanted, type(got)), 4) end
local function kind(wanted, write)
  return function(a, i, k, x, default)
    if x == nil then x = default end
    if x == none then return end -- AJ_NONE is all zeros
    if not write(a[i], x, k) then wrong(i, wanted, x) end
    k[#k + 1] = x
  end
end
local function whole(x) return type(x) == "number" and x == math.floor(x) or type(x) == "cdata" and ffi.istype("int64_t", x) end
local function list(ctype, tag, field, item)
  return function(v, x, k)
    if type(x) ~= "table" then x = { x } end
    local n = x.n or #x
    local values = ffi.new(ctype, math.max(n, 1))
    for i = 1, n do
      if item and not item(x[i]) then return false end
      values[i - 1] = is_tensor(x[i]) and x[i].p or x[i]
    end
    k[#k + 1] = values
    v.tag, v.aux, v.v[field] = tag, n, values
    return true
  end
end
put.int = kind("whole number", function(v, x)
  v.tag, v.v.i = INT, whole(x) and x or 0
  return whole(x)
end)
put.float = kind("number", function(v, x)
  v.tag, v.v.f = FLOAT, tonumber(x) or 0
  return tonumber(x) ~= nil
end)
put.bool = kind("boolean", function(v, x)
  v.tag, v.v.i = BOOL, x and 1 or 0
  return type(x) == "boolean"
end)
-- Lua has one kind of number: a whole one is an integer, which promotes no tensor.
local function scalar(v, x, k)
  if type(x) == "boolean" then v.tag, v.v.i = BOOL, x and 1 or 0
  elseif whole(x) then v.tag, v.v.i = INT, x
  elseif type(x) == "number" then v.tag, v.v.f = FLOAT, x
  elseif ffi.istype(Complex, x) then
    local parts = ffi.new("double[2]", x.re, x.im)
    k[#k + 1] = parts
    v.tag, v.v.c128 = COMPLEX, parts
  else return false end
  return true
end
local function tensor(v, x)
  if not is_tensor(x) then return false end
  v.tag, v.v.tensor = TENSOR, x.p
  return true
end
put.scalar = kind("number", scalar)
put.tensor = kind("tensor", tensor)
put.operand = kind("tensor or number", function(v, x, k) return tensor(v, x) or scalar(v, x, k) end)
put.string = kind("string", function(v, x, k)
  if type(x) ~= "string" then return false end
  v.tag, v.aux, v.v.str = STRING, #x, x
  return true
end)
put.ints = kind("whole numbers", list("int64_t[?]", INTS, "ints", whole))
put.floats = kind("numbers", list("double[?]", FLOATS, "floats", tonumber))
put.bools = kind("booleans", list("uint8_t[?]", BOOLS, "bools"))
put.tensors = kind("tensors", list("aj_tensor*[?]", TENSORS, "tensors", function(x) return x == nil or is_tensor(x) end))
put.operands = put.tensors
put.dtype = kind("name of a dtype", function(v, x)
  if type(x) == "cdata" then v.v.dtype = x
  elseif type(x) == "string" then check(core.dtype_find(str(x), ffi.cast("DLDataType*", v.v)), 5)
  else return false end
  v.tag = DTYPE
  return true
end)
put.device = kind("name of a device", function(v, x)
  if type(x) == "cdata" then v.v.device = x
  elseif type(x) == "string" then
    local name, number = x:match("^([^:]+):?(%d*)$")
    local found = ffi.new("int32_t[1]")
    check(core.device_find(str(name or x), found), 5)
    v.v.device.device_type, v.v.device.device_id = found[0], tonumber(number) or 0
  else return false end
  v.tag = DEVICE
  return true
end)
local formats = { contiguous = 0, preserve = 1, channels_last = 2, channels_last_3d = 3 }
put.memory_format = kind("name of a memory format", function(v, x)
  v.tag, v.v.i = MEMORY_FORMAT, formats[x] or tonumber(x) or 0
  return formats[x] or type(x) == "number"
end)
put.layout = kind("number of a layout", function(v, x)
  v.tag, v.v.i = LAYOUT, tonumber(x) or 0
  return type(x) == "number"
end)
-- A generator, stream or function is a tag of its own. Which of them is wanted, and of which type an object, the library tells.
put.object = kind("object that an op gave", function(v, x)
  if not ffi.istype(Counted, x) then return false end
  v.tag, v.v.object = x.p.type < DYNAMIC and x.p.type or OBJECT, x.p
  return true
end)
put.unknown = kind("nil (this binding has no form for its kind)", function() return false end)

-- A result as Lua has it. Lists become tables. Whatever is counted (from TENSOR on) is given away here.
local function take(v)
  local tag = v.tag
  if tag == TENSOR then return own(v.v.tensor) end
  if tag == BOOL then return v.v.i ~= 0 end
  if tag == INT or tag == LAYOUT or tag == MEMORY_FORMAT then return tonumber(v.v.i) end
  if tag == FLOAT then return v.v.f end
  if tag == DTYPE then return ffi.new("DLDataType", v.v.dtype) end
  if tag == DEVICE then return ffi.new("DLDevice", v.v.device) end
  if tag < TENSOR then return nil end
  local object, out = v.v.object
  if tag == STRING_OBJ then
    out = text(core.string_get(object))
  elseif tag == COMPLEX_OBJ then
    local parts = ffi.new("double[2]")
    check(core.complex_get(object, parts, parts + 1))
    out = Complex(parts[0], parts[1])
  elseif tag == LIST then
    local n = ffi.new("uint32_t[1]")
    local items = core.list_get(object, n)
    out = {}
    for i = 0, n[0] - 1 do
      if items[i].tag >= TENSOR then core.retain(items[i].v.object) end
      out[i + 1] = take(items[i])
    end
  else
    return Counted(object) -- whose __gc releases it
  end
  core.release(object)
  return out
end

local known = {}
-- Of `results`, the first `shown` come back.
local function call(name, a, n, results, shown, in_place)
  local op = known[name]
  if not op then
    op = dispatch.find_op(str(name))
    if op == nil then error("there is no op '" .. name .. "'; was its plugin loaded?", 3) end
    known[name] = op
  end
  local rets = args(math.max(results, 1))
  if in_place then rets[0] = a[0] end
  check(dispatch.call(op, a, n, rets, results), 3)
  for i = shown, results - 1 do -- by-products of kernels
    if rets[i].tag >= TENSOR then core.release(rets[i].v.object) end
  end
  if shown == 1 then return take(rets[0]) end
  local out = {}
  for i = 0, shown - 1 do out[i + 1] = take(rets[i]) end
  return unpack(out, 1, shown)
end

-- @OPS@

-- What is no op.

-- A tensor of numbers in a table, or a table of tables; float32 unless a dtype is named.
function M.tensor(values, dtype)
  local shape, flat, at = {}, {}, values
  while type(at) == "table" do
    shape[#shape + 1] = #at
    at = at[1]
  end
  local function walk(x, depth)
    if depth > #shape then
      flat[#flat + 1] = x
      return
    end
    if type(x) ~= "table" or #x ~= shape[depth] then error("tensor: rows differ in length", 4) end
    for _, item in ipairs(x) do walk(item, depth + 1) end
  end
  walk(values, 1)
  local t = M.empty(shape, "float64")
  local data = ffi.new("double[?]", math.max(#flat, 1), flat)
  check(core.tensor_copy_bytes(t.p, data, #flat * 8, 0))
  return M.to(t, dtype or "float32")
end

-- Dense bytes, for files; shape and dtype say what they are.
function M.from_bytes(bytes, shape, dtype)
  local t = M.empty(shape, dtype)
  check(core.tensor_copy_bytes(t.p, ffi.cast("void*", bytes), #bytes, 0))
  return t
end

local dtypes = { F32 = "float32", F64 = "float64", F16 = "float16", BF16 = "bfloat16", I64 = "int64", I32 = "int32", I16 = "int16",
                 I8 = "int8", U8 = "uint8", BOOL = "bool" }
-- The tensors of a safetensors file by name.
function M.load_safetensors(path)
  local file = assert(io.open(path, "rb"))
  local all = file:read("*a")
  file:close()
  local size = #all >= 8 and tonumber(ffi.cast("const uint64_t*", all)[0]) or math.huge
  if size > #all - 8 then error("load_safetensors: '" .. path .. "' has no header", 2) end
  local out, begin = {}, 8 + size
  for name, entry in all:sub(9, begin):gmatch('"([^"]+)"%s*:%s*(%b{})') do
    local dtype, from, to = dtypes[entry:match('"dtype"%s*:%s*"(%w+)"')], entry:match('"data_offsets"%s*:%s*%[%s*(%d+)%s*,%s*(%d+)')
    if dtype and from then
      local shape = {}
      for n in entry:match('"shape"%s*:%s*(%b[])'):gmatch("%d+") do shape[#shape + 1] = tonumber(n) end
      if begin + to > #all then error("load_safetensors: '" .. name .. "' lies outside of '" .. path .. "'", 2) end
      out[name] = M.from_bytes(all:sub(begin + from + 1, begin + to), shape, dtype)
    end
  end
  return out
end

function M.manual_seed(seed) check(core.manual_seed(seed)) end
function M.set_num_threads(n) check(core.set_num_threads(n)) end
function M.load_plugin(path) check(lib.aj_load_plugin(path)) end

-- A captured program (.aj), a function of tensors: local model = aj.load_program "model.aj"; print(model(x)).
function M.load_program(path)
  local programs = ffi.cast("const aj_programs*", lib.aj_get_interface("x.program", 1))
  if programs == nil then error("load_program: libaj_graph.so is not installed", 2) end
  local out = ffi.new("aj_object*[1]")
  check(programs.load(str(path), out))
  local program = Counted(out[0])
  local results = programs.count(program.p, 1)
  return function(...)
    local n, given = select("#", ...), { ... }
    local inputs, made = ffi.new("aj_tensor*[?]", math.max(n, 1)), ffi.new("aj_tensor*[?]", math.max(results, 1))
    for i = 1, n do
      if not is_tensor(given[i]) then error(("argument %d: tensor expected, got %s"):format(i, type(given[i])), 2) end
      inputs[i - 1] = given[i].p
    end
    check(programs.run(program.p, inputs, n, 0, made, results))
    local all = {}
    for i = 1, results do all[i] = own(made[i - 1]) end
    return unpack(all, 1, results)
  end
end

-- Calls f without recording; what f returns comes back.
function M.no_grad(f, ...)
  local before = autograd.set_grad_mode(0)
  local out = { pcall(f, ...) }
  autograd.set_grad_mode(before)
  if not out[1] then error(out[2], 0) end
  return unpack(out, 2)
end

function Tensor:shape()
  local out = {}
  for i = 1, self.p.dl.ndim do out[i] = tonumber(self.p.dl.shape[i - 1]) end
  return out
end
function Tensor:size(dim) return tonumber(self.p.dl.shape[dim < 0 and dim + self.p.dl.ndim or dim]) end
function Tensor:dtype()
  local info = ffi.new("aj_dtype_info", ffi.sizeof("aj_dtype_info"))
  check(core.dtype_info(self.p.dl.dtype, info))
  return text(info.name)
end
-- All numbers in order, in one table.
function Tensor:numbers()
  local n = tonumber(core.tensor_numel(self.p))
  local values, out = ffi.new("double[?]", math.max(n, 1)), {}
  check(core.tensor_copy_bytes(M.contiguous(M.to(M.detach(self), "float64", "cpu")).p, values, n * 8, 1))
  for i = 1, n do out[i] = values[i - 1] end
  return out
end
function M.detach(t)
  local out = ffi.new("aj_tensor*[1]")
  check(autograd.detach(t.p, out))
  return own(out[0])
end
function Tensor:requires_grad_(on)
  check(autograd.set_requires_grad(self.p, on == false and 0 or 1))
  return self
end
function Tensor:grad()
  local out = ffi.new("aj_tensor*[1]")
  check(autograd.grad(self.p, out))
  return own(out[0])
end
function Tensor:set_grad(grad) check(autograd.set_grad(self.p, grad and grad.p)) end
function Tensor:backward()
  local root = ffi.new("aj_tensor*[1]", self.p)
  local run = ffi.new("aj_backward", { struct_size = ffi.sizeof("aj_backward"), roots = root, nroots = 1 })
  check(autograd.backward(run))
end
Tensor.detach = M.detach
setmetatable(Tensor, { __index = function(_, name) error(("a tensor has no method '%s'"):format(name), 2) end })

local kinds = { [68] = "generator", [69] = "stream", [70] = "function" }
ffi.metatype(Counted, {
  __gc = function(o) core.release(o.p) end,
  __tostring = function(o) return "adjoin " .. (kinds[o.p.type] or "object " .. text(core.type_name(o.p.type))) end,
})
ffi.metatype(Handle, {
  __index = Tensor,
  __gc = function(t) core.release(t.p) end,
  __add = M.add, __sub = M.sub, __mul = M.mul, __div = M.div, __pow = M.pow, __unm = M.neg,
  __tostring = function(t)
    local numbers = t:numbers()
    for i = 1, math.min(#numbers, 20) do numbers[i] = ("%.4g"):format(numbers[i]) end
    local shown = table.concat(numbers, ", ", 1, math.min(#numbers, 20)) .. (#numbers > 20 and ", ..." or "")
    return ("tensor(%s, shape={%s}, dtype=%s)"):format(shown, table.concat(t:shape(), ", "), t:dtype())
  end,
})

return M
