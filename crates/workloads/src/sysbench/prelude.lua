-- The API of sysbench in a script's Lua state. `host` holds what Rust does at once; what has to wait for a database is asked
-- for by a yield, so that many states share a thread.
local host = ...

-- Compiled code is not watched, so that an endless loop in it would not end.
-- Compiled loops could not be ended.
jit.off()

local yield, xpcall, type, tostring, tonumber = coroutine.yield, xpcall, type, tostring, tonumber
local error, setmetatable, unpack, select, rawget, rawset = error, setmetatable, unpack, select, rawget, rawset
local concat, format, floor = table.concat, string.format, math.floor

-- What a yield asks for: the numbers of asked.rs.
local CONNECT, DISCONNECT, QUERY, PREPARE, EXECUTE, FORGET, SLEEP = 1, 2, 3, 4, 5, 6, 7
local NEXT, ENDED, FAILED, RESTART = 8, 9, 10, 11

local api, opt = {}, {}
sysbench = {
   version = "1.1.0",
   version_string = "sysbench 1.1.0 (dbdyno)",
   tid = host.tid,
   opt = opt,
   hooks = {},
   error = { NONE = 0, RESTART_EVENT = 1 },
   rand = {
      default = host.default, uniform = host.uniform, gaussian = host.gaussian, special = host.special,
      pareto = host.pareto, zipfian = host.zipfian, unique = host.unique, uniform_double = host.fraction,
      uniform_uint64 = host.bits, string = host.string, varstring = host.varstring,
   },
   cmdline = {
      command = host.command, script_path = host.script_path, argv = host.argv, options = {}, commands = {},
      PARALLEL_COMMAND = true, ARG_BOOL = "BOOL", ARG_INT = "INT", ARG_SIZE = "SIZE", ARG_DOUBLE = "DOUBLE",
      ARG_STRING = "STRING", ARG_LIST = "LIST", ARG_FILE = "FILE",
   },
   sql = {
      error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
      type = {
         NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
         DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
      },
   },
   histogram = {},
}
local sql, hooks = sysbench.sql, sysbench.hooks

--------------------------------------------------------------------------------------------- errors of statements

-- The text of the last failed statement: an error that is this very text has that statement's class.
local last_sql_error

-- What follows a failed statement: an event that begins again, or an error.
local function fail(con, query, class, errno, state, message)
   con.sql_errno, con.sql_state, con.sql_errmsg = errno, state, message
   local err = { connection = con, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message }
   local ignored = class == "ignorable"
   if not ignored and hooks.sql_error_ignorable then
      ignored = hooks.sql_error_ignorable(err) and true or false
   end
   if ignored then
      con.error = sql.error.IGNORABLE
      err.errcode = sysbench.error.RESTART_EVENT
      error(err, 0)
   end
   con.error = sql.error.FATAL
   last_sql_error = format("SQL error, errno = %d, state = '%s': %s", errno, state, message)
   error(last_sql_error, 0)
end

---------------------------------------------------------------------------------------------------------- results

-- Rows of a text query, kept by the host until the connection's next query.
local Result = {}
Result.__index = Result

function Result:fetch_row()
   if self.prepared then
      error("rows of prepared statements are counted, not kept: use query() to read them", 2)
   end
   return host.row(self.connection.id, self.generation)
end

function Result:free() end

--------------------------------------------------------------------------------------------- prepared statements

local Parameter = {}
Parameter.__index = Parameter

function Parameter:set(value)
   local kind = self.kind
   if kind == "text" then
      if value ~= nil then
         value = tostring(value)
         if self.maxlen and #value > self.maxlen then value = value:sub(1, self.maxlen) end
      end
   elseif value ~= nil then
      value = tonumber(value) or error("a number is wanted, not " .. tostring(value), 2)
      if kind == "int" then value = value < 0 and -floor(-value) or floor(value) end
   end
   self.value = value
end

function Parameter:set_rand_str(template)
   local value = host.string(template)
   if self.maxlen and #value > self.maxlen then value = value:sub(1, self.maxlen) end
   self.value = value
end

local KINDS = {}
for name, number in pairs(sql.type) do
   local is_int = name == "TINYINT" or name == "SMALLINT" or name == "INT" or name == "BIGINT"
   local is_text = name == "CHAR" or name == "VARCHAR"
   local is_number = name == "FLOAT" or name == "DOUBLE"
   KINDS[number] = is_int and "int" or is_text and "text" or is_number and "number" or nil
end

local Statement = {}
Statement.__index = Statement

function Statement:bind_create(btype, maxlen)
   local kind = KINDS[btype] or error("Unsupported argument type: " .. tostring(btype), 2)
   if kind == "text" and (type(maxlen) ~= "number" or maxlen <= 0) then
      error("CHAR and VARCHAR parameters need a length: bind_create(type, length)", 2)
   end
   return setmetatable({ kind = kind, maxlen = maxlen }, Parameter)
end

function Statement:bind_param(...)
   self.params, self.count = { ... }, select("#", ...)
end

function Statement:bind_result(...) end

local function literal(value)
   if value == nil then return "NULL" end
   if type(value) == "number" then
      return value == floor(value) and format("%.0f", value) or format("%.17g", value)
   end
   return "'" .. value:gsub("'", "''") .. "'"
end

-- The statement's text with its parameters, as --db-ps-mode=disable sends it.
function Statement:text()
   local texts, params = { self.parts[1] }, self.params
   for i = 2, #self.parts do
      local param = params[i - 1] or error("parameter " .. i - 1 .. " is not bound", 3)
      texts[#texts + 1] = literal(param.value)
      texts[#texts + 1] = self.parts[i]
   end
   return concat(texts)
end

local function values(params, count)
   local list = {}
   for i = 1, count do list[i] = params[i].value end
   return unpack(list, 1, count)
end

function Statement:execute()
   local con, id, count, params = self.connection, self.id, self.count, self.params
   local rows, class, errno, state, message
   if self.closed then error("the statement is closed", 2) end
   if self.epoch ~= con.epoch then
      error("the connection was opened again: prepare its statements anew, in before_restart_event", 2)
   end
   if id == nil then
      rows, class, errno, state, message = yield(QUERY, con.id, self:text(), true)
   elseif count == 1 then
      rows, class, errno, state, message = yield(EXECUTE, con.id, id, params[1].value)
   elseif count == 0 then
      rows, class, errno, state, message = yield(EXECUTE, con.id, id)
   elseif count == 2 then
      rows, class, errno, state, message = yield(EXECUTE, con.id, id, params[1].value, params[2].value)
   else
      rows, class, errno, state, message = yield(EXECUTE, con.id, id, values(params, count))
   end
   if rows == nil then fail(con, self.query, class, errno, state, message) end
   if rows < 0 then return nil end
   local result = self.result
   result.nrows = rows
   return result
end

function Statement:next_result() return nil end

function Statement:close()
   if not self.closed and self.id and self.epoch == self.connection.epoch then
      yield(FORGET, self.connection.id, self.id)
   end
   self.closed = true
end

------------------------------------------------------------------------------------------------------ connections

local Connection = {}
Connection.__index = Connection

local function result_of(con, rows, fields)
   con.generation = con.generation + 1
   local result = { connection = con, generation = con.generation, nrows = rows, nfields = fields, statement = nil }
   return setmetatable(result, Result)
end

function Connection:query(query)
   query = tostring(query)
   local rows, class, errno, state, message = yield(QUERY, self.id, query, false, self.generation + 1)
   if rows == nil then fail(self, query, class, errno, state, message) end
   if rows < 0 then return nil end
   return result_of(self, rows, class)
end

function Connection:query_row(query)
   local result = self:query(query)
   local row = result and result:fetch_row()
   if row then return unpack(row, 1, result.nfields) end
   return nil
end

-- A text in parts: between them go the parameters.
local function parts_of(query)
   local parts, from = {}, 1
   while true do
      local at = query:find("?", from, true)
      parts[#parts + 1] = query:sub(from, at and at - 1 or nil)
      if not at then return parts end
      from = at + 1
   end
end

function Connection:prepare(query)
   local statement = setmetatable({ connection = self, query = query, count = 0, params = {}, epoch = self.epoch }, Statement)
   statement.result = setmetatable({ connection = self, prepared = true, nrows = 0, nfields = 0 }, Result)
   if not host.text_only then
      local id, fields, errno, state, message = yield(PREPARE, self.id, query)
      if id == nil then fail(self, query, fields, errno, state, message) end
      -- Below 0: the server prepares no such statement, which is then sent as text.
      if id >= 0 then
         statement.id, statement.result.nfields = id, fields
         return statement
      end
   end
   statement.parts = parts_of(query)
   return statement
end

-- As many bytes as sysbench sends in one statement.
local PACKET = 512 * 1024

function Connection:bulk_insert_init(prefix)
   self.bulk = { prefix = prefix, size = #prefix, rows = 0 }
end

local function flush(con, bulk)
   if bulk.rows == 0 then return end
   local query = bulk.prefix .. concat(bulk, ",", 1, bulk.rows)
   con.bulk = { prefix = bulk.prefix, size = #bulk.prefix, rows = 0 }
   con:query(query)
end

function Connection:bulk_insert_next(row)
   local bulk = self.bulk or error("bulk_insert_init() comes first", 2)
   if bulk.size + #row + 1 >= PACKET then
      flush(self, bulk)
      bulk = self.bulk
   end
   bulk.rows = bulk.rows + 1
   bulk[bulk.rows], bulk.size = row, bulk.size + #row + 1
end

function Connection:bulk_insert_done()
   local bulk = self.bulk or error("bulk_insert_init() comes first", 2)
   flush(self, bulk)
   self.bulk = nil
end

function Connection:disconnect()
   if not self.gone then yield(DISCONNECT, self.id) end
   self.gone = true
end

function Connection:reconnect()
   local id, class, errno, state, message = yield(CONNECT, self.id)
   if id == nil then fail(self, "reconnect", class, errno, state, message) end
   self.gone, self.epoch = nil, self.epoch + 1
   return true
end

function Connection:more_results() return false end

function Connection:next_result() return nil end

local Driver = {}
Driver.__index = Driver

function Driver:name() return host.driver end

function Driver:connect()
   local con = setmetatable({ generation = 0, epoch = 0, error = sql.error.NONE }, Connection)
   local id, class, errno, state, message = yield(CONNECT)
   if id == nil then fail(con, "connect", class, errno, state, message) end
   con.id = id
   return con
end

function sql.driver(name)
   if name and name ~= host.driver then
      error("the database is reached as " .. host.driver .. ", not as " .. tostring(name), 2)
   end
   return setmetatable({}, Driver)
end

---------------------------------------------------------------------------------------------------------- options

local function truth(value)
   if type(value) == "boolean" then return value end
   local words = { on = true, ["true"] = true, ["1"] = true, [""] = true, off = false, ["false"] = false, ["0"] = false }
   return words[tostring(value):lower()]
end

local function size(value)
   local digits, unit = tostring(value):match("^%s*(-?[%d.]+)%s*([KMGTkmgt]?)[Bb]?%s*$")
   local power = digits and ({ [""] = 0, k = 1, m = 2, g = 3, t = 4 })[unit:lower()]
   local number = tonumber(digits)
   return number and number * 1024 ^ power
end

local function list(value)
   if type(value) == "table" then return value end
   local items = {}
   for item in tostring(value):gmatch("[^,]+") do items[#items + 1] = item end
   return items
end

local function kind_of(definition)
   local kind, default = definition[3], definition[2]
   if kind then return kind end
   local kinds = { boolean = "BOOL", number = "DOUBLE", table = "LIST" }
   return kinds[type(default)] or "STRING"
end

-- `value` as the option's type; nil and what was wanted where it is none.
local function typed(definition, value)
   local kind, result = kind_of(definition), nil
   if kind == "BOOL" then
      result = truth(value)
      if result == nil then return nil, "on or off" end
   elseif kind == "INT" or kind == "SIZE" or kind == "DOUBLE" then
      result = size(value)
      if not result then return nil, "a number" end
      if kind ~= "DOUBLE" then result = floor(result) end
   elseif kind == "LIST" then
      result = list(value)
   else
      result = type(value) == "table" and concat(value, ",") or tostring(value)
   end
   if type(definition[4]) == "function" then
      local ok, checked = pcall(definition[4], result)
      if not ok then return nil, tostring(checked) end
      if checked ~= nil then result = checked end
   end
   return result
end

local function declared()
   local options = sysbench.cmdline.options
   return type(options) == "table" and options or {}
end

local function underscored(name) return (tostring(name):gsub("-", "_")) end

-- Sets the options; returns what is wrong with one of `given`, by name.
function api.set_options(builtin, given)
   local options, is_known = {}, next(declared()) ~= nil
   for name, definition in pairs(declared()) do
      if type(definition) ~= "table" then definition = { tostring(definition) } end
      options[underscored(name)] = definition
   end
   for name, value in pairs(builtin) do opt[name] = value end
   for name, definition in pairs(options) do
      if opt[name] == nil then
         local default = definition[2]
         if default ~= nil then opt[name] = typed(definition, default) end
      end
   end
   for name, value in pairs(given) do
      name = underscored(name)
      local definition = options[name]
      if definition then
         local result, wanted = typed(definition, value)
         if result == nil then return name, format("%s is %s, but must be %s", name, tostring(value), wanted) end
         opt[name] = result
      elseif is_known then
         return name, "the script has no option " .. name
      else
         -- Scripts of before 1.0 declare nothing, and read texts.
         opt[name] = type(value) == "table" and concat(value, ",") or type(value) == "boolean" and (value and "on" or "off") or tostring(value)
      end
   end
end

-- What the script offers: its options with descriptions and defaults, and its commands.
function api.offers()
   local options, commands = {}, {}
   for name, definition in pairs(declared()) do
      local default = definition[2]
      if type(default) == "table" then default = concat(default, ",") end
      if type(default) == "boolean" then default = default and "on" or "off" end
      options[#options + 1] = {
         underscored(name), tostring(definition[1] or ""), kind_of(definition), default ~= nil and tostring(default) or nil,
      }
   end
   table.sort(options, function(a, b) return a[1] < b[1] end)
   for _, name in ipairs({ "prepare", "cleanup", "help" }) do
      if type(rawget(_G, name)) == "function" then commands[name] = false end
   end
   if type(rawget(_G, "event")) == "function" or type(rawget(_G, "thread_run")) == "function" then commands.run = true end
   for name, entry in pairs(type(sysbench.cmdline.commands) == "table" and sysbench.cmdline.commands or {}) do
      commands[name] = type(entry) == "table" and entry[2] ~= nil and entry[2] ~= false
   end
   return options, commands
end

------------------------------------------------------------------------------------------------- life of a thread

-- An error with where it was raised; a request to begin again passes.
local function traced(err)
   if type(err) == "table" and err.errcode ~= nil then return err end
   return { text = tostring(err), trace = host.traceback(), is_sql = err == last_sql_error and err ~= nil }
end

-- Takes what xpcall returned of an event: whether it went well.
local function went_well(ok, result)
   if ok then return true end
   -- Without memory there is no handler.
   if type(result) ~= "table" then result = { text = tostring(result) } end
   if result.errcode == sysbench.error.RESTART_EVENT then
      if hooks.before_restart_event then hooks.before_restart_event(result) end
      yield(RESTART, tostring(result.sql_errno or ""), tostring(result.sql_errmsg or "a request of the script"))
   else
      yield(FAILED, result.is_sql or false, result.text or "error code " .. tostring(result.errcode), result.trace or "")
   end
   return false
end

function api.thread()
   local tid = sysbench.tid
   if thread_init then thread_init(tid) end
   if not yield(NEXT) then return api.done() end
   if thread_run then
      went_well(xpcall(thread_run, traced, tid))
      return yield(ENDED)
   end
   while true do
      last_sql_error = nil
      local ok, result = xpcall(event, traced, tid)
      if went_well(ok, result) and result then
         yield(ENDED)
         return
      end
      if ok and not yield(NEXT) then return api.done() end
   end
end

function api.done()
   if thread_done then thread_done(sysbench.tid) end
end

function api.init()
   if init then init() end
end

function api.finish()
   if done then done() end
end

function api.command(name)
   local entry = sysbench.cmdline.commands[name]
   local run = type(entry) == "table" and entry[1] or type(entry) == "function" and entry or rawget(_G, name)
   if type(run) ~= "function" then error("the script has no command " .. name, 0) end
   if run(sysbench.tid) == false then error("the script's command " .. name .. " returned false", 0) end
end

function api.report(kind, stat)
   local hook = hooks["report_" .. kind]
   if not hook then return false end
   hook(stat)
   return true
end

return api
