-- What scripts of before sysbench 1.0 call, what scripts reach through LuaJIT's ffi, reports, histograms, and the sandbox.
local host, api = ...

local format, floor, yield = string.format, math.floor, coroutine.yield
local rand, sql, opt = sysbench.rand, sysbench.sql, sysbench.opt
local SLEEP, NEXT = 7, 8

------------------------------------------------------------------------------------------------ before version 1.0

-- Options are globals too, unless the script has one of that name.
thread_id, test = host.tid, host.script_path
setmetatable(_G, { __index = function(_, name) return opt[name] end })

sb_rand, sb_rand_uniform, sb_rand_gaussian = rand.default, rand.uniform, rand.gaussian
sb_rand_special, sb_rand_pareto, sb_rand_uniq = rand.special, rand.pareto, rand.unique
sb_rand_str, sb_rnd = rand.string, function() return rand.uniform(0, 4294967295) end

DB_ERROR_NONE, DB_ERROR_DEADLOCK, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 1, 2

local current
local function connection()
   if not current then current = sql.driver():connect() end
   return current
end

function db_connect() current = sql.driver():connect() end
function db_disconnect() if current then current:disconnect() end current = nil end
function db_query(query) return connection():query(query) end
function db_bulk_insert_init(query) connection():bulk_insert_init(query) end
function db_bulk_insert_next(row) connection():bulk_insert_next(row) end
function db_bulk_insert_done() connection():bulk_insert_done() end
function db_prepare(query) return connection():prepare(query) end
function db_execute(statement)
   for i, cell in ipairs(statement.cells or {}) do statement.params[i]:set(cell[1]) end
   return statement:execute()
end
function db_close(statement) statement:close() end
function db_store_results(result) return result end
function db_free_results(result) if result then result:free() end end
function db_bind_result() end

-- Parameters of 0.5 are tables that hold a value, or values.
function db_bind_param(statement, cells)
   local params = {}
   for i, cell in ipairs(cells) do
      if type(cell) ~= "table" then cells[i] = { cell } end
      local is_text = type(cells[i][1]) == "string"
      params[i] = statement:bind_create(is_text and sql.type.VARCHAR or sql.type.BIGINT, is_text and 65535 or nil)
   end
   statement.cells = cells
   statement:bind_param(unpack(params))
end

--------------------------------------------------------------------------------------------------------------- ffi

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
package.loaded.ffi = ffi

---------------------------------------------------------------------------------------------------------- reports

local function per_second(stat, count) return stat.time_interval > 0 and count / stat.time_interval or 0 end

function sysbench.report_default(stat)
   local queries = stat.reads + stat.writes + stat.other
   print(format("[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f",
      stat.time_total, stat.threads_running, per_second(stat, stat.events), per_second(stat, queries),
      per_second(stat, stat.reads), per_second(stat, stat.writes), per_second(stat, stat.other),
      opt.percentile or 95, stat.latency_pct * 1000, per_second(stat, stat.errors), per_second(stat, stat.reconnects)))
end

function sysbench.report_csv(stat)
   local queries = stat.reads + stat.writes + stat.other
   print(format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
      stat.time_total, stat.threads_running, per_second(stat, stat.events), per_second(stat, queries),
      per_second(stat, stat.reads), per_second(stat, stat.writes), per_second(stat, stat.other),
      stat.latency_pct * 1000, per_second(stat, stat.errors), per_second(stat, stat.reconnects)))
end

local has_json = false
function sysbench.report_json(stat)
   local queries = stat.reads + stat.writes + stat.other
   io.write(has_json and ",\n" or "[\n")
   has_json = true
   io.write(format('  {\n    "time": %4.0f,\n    "threads": %u,\n    "tps": %4.2f,\n    "qps": {\n      "total": %4.2f,\n      "reads": %4.2f,\n' ..
      '      "writes": %4.2f,\n      "other": %4.2f\n    },\n    "latency": %4.2f,\n    "errors": %4.2f,\n    "reconnects": %4.2f\n  }',
      stat.time_total, stat.threads_running, per_second(stat, stat.events), per_second(stat, queries),
      per_second(stat, stat.reads), per_second(stat, stat.writes), per_second(stat, stat.other),
      stat.latency_pct * 1000, per_second(stat, stat.errors), per_second(stat, stat.reconnects)))
end

local finish = api.finish
function api.finish()
   if has_json then io.write("\n]\n") end
   finish()
end

local Histogram = {}
Histogram.__index = Histogram

function sysbench.histogram.new(size, least, greatest)
   if size < 2 or least <= 0 or greatest <= least then error("a histogram has 2 or more buckets between 0 < least < greatest", 2) end
   local step = (math.log(greatest) - math.log(least)) / (size - 1)
   return setmetatable({ size = size, least = least, step = step, counts = {} }, Histogram)
end

function Histogram:update(value)
   local bucket = value <= 0 and 0 or floor((math.log(value) - math.log(self.least)) / self.step + 0.5)
   bucket = math.max(0, math.min(self.size - 1, bucket))
   self.counts[bucket] = (self.counts[bucket] or 0) + 1
end

function Histogram:print()
   local most = 0
   for _, count in pairs(self.counts) do most = math.max(most, count) end
   print("       value  ------------- distribution ------------- count")
   for bucket = 0, self.size - 1 do
      local count = self.counts[bucket]
      if count then
         local stars = string.rep("*", floor(count / most * 40 + 0.5))
         print(format("%12.3f |%-40s %d", self.least * math.exp(bucket * self.step), stars, count))
      end
   end
end

---------------------------------------------------------------------------------------------------------- sandbox

local function not_allowed(what, word)
   return function()
      error(what .. " is off: a script reads files of its own folder only; the plan's allow = [\"" .. word .. "\"] changes that", 2)
   end
end

local real = { open = io.open, popen = io.popen, execute = os.execute, remove = os.remove, rename = os.rename }
io = {
   open = function(path, mode)
      local allowed, why = host.may_open(tostring(path), mode or "r")
      if not allowed then return nil, why end
      return real.open(path, mode)
   end,
   lines = function(path)
      local file = assert(io.open(path))
      return file:lines()
   end,
   write = function(...) host.write(table.concat({ ... })) end,
   read = function() return nil end,
   popen = host.allows_os and real.popen or not_allowed("io.popen", "os"),
   stdout = { write = function(_, ...) host.write(table.concat({ ... })) end, flush = function() end },
   stderr = { write = function(_, ...) host.write(table.concat({ ... })) end, flush = function() end },
}
os = {
   time = os.time, clock = os.clock, date = os.date, difftime = os.difftime,
   -- The environment may hold passwords.
   getenv = function() return nil end,
   execute = host.allows_os and real.execute or not_allowed("os.execute", "os"),
   remove = host.allows_os and real.remove or not_allowed("os.remove", "os"),
   rename = host.allows_os and real.rename or not_allowed("os.rename", "os"),
   exit = function() error("os.exit() is not for a script: return a value from event() to end its thread", 2) end,
}

function print(...)
   local texts = {}
   for i = 1, select("#", ...) do texts[i] = tostring((select(i, ...))) end
   host.write(table.concat(texts, "\t") .. "\n")
end

-- An endless loop inside pcall ends too.
local real_pcall, real_xpcall = pcall, xpcall
local function unless_over(ok, ...)
   if not ok and host.is_over() then error((...), 0) end
   return ok, ...
end
function pcall(...) return unless_over(real_pcall(...)) end
function xpcall(...) return unless_over(real_xpcall(...)) end

-- The same draws for each variant, whatever the script seeds.
function math.random(low, high)
   if not low then return rand.uniform_double() end
   if not high then low, high = 1, low end
   return rand.uniform(low, high)
end
function math.randomseed() end

debug = { traceback = function(text) return (text and tostring(text) .. "\n" or "") .. host.traceback() end }

local function load_module(name, path)
   local text, found = host.module(name, path)
   if not text then error(found, 0) end
   local chunk, mistake = loadstring(text, "@" .. found)
   if not chunk then error(mistake, 0) end
   return chunk
end
package.path = host.path
package.loaders = {
   function(name) return package.preload[name] or "\n\tno field package.preload['" .. name .. "']" end,
   function(name)
      local text, found = host.module(name, package.path)
      if not text then return "\n\t" .. found end
      return load_module(name, package.path)
   end,
}
function dofile(path) return load_module(path, "")() end
function loadfile(path)
   local ok, chunk = real_pcall(load_module, path, "")
   if ok then return chunk end
   return nil, chunk
end
