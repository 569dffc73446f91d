-- tests/frontends/objects.lua: objects, functions and streams go from op to op in Lua. tests/abi/objects.c has the ops.
local aj = require "adjoin"
io.stdout:setvbuf "no" -- the plugin prints, too
aj.load_plugin(arg[1])
local acme, x = aj.acme, aj.tensor { 1, 2, 3 }

local function same(t, wanted) assert(table.concat(t:numbers(), " ") == wanted, tostring(t)) end
local function fails(wanted, f, ...)
  local ok, told = pcall(f, ...)
  assert(not ok and told:find(wanted, 1, true), tostring(told))
end

local plan = acme.make_plan(x, 3)
assert(tostring(plan) == "adjoin object acme::plan", tostring(plan))
same(acme.run_plan(x, plan), "3 6 9")
same(acme.run_any(x, plan), "3 6 9")
same(acme.run_maybe(x), "1 2 3")
fails("acme::other", acme.run_plan, x, acme.make_other(x))
fails("argument 2: object that an op gave expected, got string", acme.run_plan, x, "plan")
plan = nil
collectgarbage()
collectgarbage()

local stream = acme.make_stream(x)
assert(tostring(stream) == "adjoin stream" and acme.stream_device(x, stream) == 100 and acme.stream_device(x) == -1)
fails("argument 'stream'", acme.stream_device, x, acme.make_plan(x))

same(acme.named(x), "1 2 3")
assert(acme.named(x):dtype() == "float64" and acme.named(x, nil, "float16"):dtype() == "float16")
fails("argument 2: nil (this binding has no form for its kind) expected, got table", acme.named, x, { "a" })
collectgarbage()
collectgarbage()
print "everything holds"
