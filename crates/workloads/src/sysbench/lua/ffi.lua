-- What scripts reach through LuaJIT's ffi.
local host = ...

local rand, yield = sysbench.rand, coroutine.yield
local SLEEP, NEXT = 7, 8

local COUNTERS = { SB_CNT_OTHER = 0, SB_CNT_READ = 1, SB_CNT_WRITE = 2, SB_CNT_ERROR = 3, SB_CNT_RECONNECT = 4 }
local has_begun = false
local C = {
   sb_counter_inc = function(_, counter) host.count(tonumber(counter), 1) end,
   sb_counter_add = function(_, counter, by) host.count(tonumber(counter), tonumber(by)) end,
   sb_counter_val = function(_, counter) return host.counted(tonumber(counter)) end,
   sb_rand_default = rand.default, sb_rand_uniform = rand.uniform, sb_rand_gaussian = rand.gaussian,
   sb_rand_special = rand.special, sb_rand_pareto = rand.pareto, sb_rand_zipfian = rand.zipfian,
   sb_rand_unique = rand.unique, sb_rand_uniform_double = rand.uniform_double,
   -- A script's own loop: an event ends where the next one is asked for.
   sb_more_events = function()
      if has_begun then
         has_begun = false
         return yield(NEXT)
      end
      return true
   end,
   sb_event_start = function() has_begun = true end,
   sb_event_stop = function() end,
   usleep = function(us) yield(SLEEP, tonumber(us)) return 0 end,
   sleep = function(seconds) yield(SLEEP, tonumber(seconds) * 1000000) return 0 end,
}
for name, number in pairs(COUNTERS) do C[name] = number end
local function refused(name)
   error("ffi." .. name .. " is not offered: a script may call the sb_ functions, sleep and usleep of ffi.C", 3)
end
ffi = setmetatable({
   cdef = function() end,
   string = tostring,
   C = setmetatable(C, { __index = function(_, name) refused("C." .. tostring(name)) end }),
}, { __index = function(_, name) refused(tostring(name)) end })
