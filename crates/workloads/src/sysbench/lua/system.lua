-- Files, programs and output, as far as a script has them.
local host = ...

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

debug = { traceback = function(text) return (text and tostring(text) .. "\n" or "") .. host.traceback() end }

-- Compiled loops could not be ended: the compiler stays off.
jit = { version = "LuaJIT", os = "Linux", on = function() end, off = function() end, flush = function() end,
   status = function() return false end, opt = { start = function() end } }
