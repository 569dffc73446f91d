-- tests/frontends/program.lua: a captured program is run from Lua.
local aj = require "adjoin"
local model = aj.load_program(arg[1])
print(model(aj.tensor { { 1, -1 }, { 2, 0.5 } }))
local ok, told = pcall(model, aj.tensor { 1 })
assert(not ok and told:find("the program was captured for", 1, true), tostring(told))
ok, told = pcall(aj.load_program, "none.aj")
assert(not ok and told:find("none.aj", 1, true), tostring(told))
