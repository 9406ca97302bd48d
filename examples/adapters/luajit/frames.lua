-- Lua functions as frames of native stacks, whether they are interpreted or in a trace with others.
--
--     local frames = require("frames")
--     handle_request = frames.frame(handle_request, "handle_request")
--
-- Each call then goes through native code of the function's own, a trampoline, and a callback from C to Lua:
-- microseconds, and the function may not yield.  Without PERFJIT=dump it stays as it is.
local ffi, util = require("ffi"), require("jit.util")
local perfjit = require("perfjit")
local lib, dump = perfjit.lib, perfjit.dump

if not dump then
    return {frame = function(func) return func end}
end

ffi.cdef [[
typedef void jitdump_entry(void);
jitdump_entry *jitdump_trampoline(struct jitdump *dump, const char *name, const char *file, uint32_t line,
                                  jitdump_entry *entry);
]]

local call_in_progress -- what the trampolines' entry is to run
local function pack(...) return {n = select("#", ...), ...} end

local entry = ffi.cast("jitdump_entry *", function()
    local call = call_in_progress
    call.results = pack(pcall(call.func, unpack(call.arguments, 1, call.arguments.n)))
end)

local function frame(func, name)
    local info = util.funcinfo(func)
    local file = (info.source or ""):match("^@(.*)")
    local trampoline = lib.jitdump_trampoline(dump, name or info.loc, file, info.linedefined or 0, entry)
    if trampoline == entry then return func end
    local function framed(...)
        local outer, call = call_in_progress, {func = func, arguments = pack(...)}
        call_in_progress = call
        trampoline()
        call_in_progress = outer
        local results = call.results
        if not results[1] then error(results[2], 0) end
        return unpack(results, 2, results.n)
    end
    jit.off(framed) -- a trace may not call what calls Lua
    return framed
end

return {frame = frame}
