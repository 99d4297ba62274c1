-- What every script uses of sysbench's API. `host` holds what Rust does at once; what has to wait for a database is asked for by
-- a yield, so that many states share a thread. What few scripts use is in other parts, loaded when it is first asked for.
local host = ...

local yield, xpcall, pcall, type, tostring, tonumber = coroutine.yield, xpcall, pcall, type, tostring, tonumber
local error, setmetatable, unpack, select, rawget = error, setmetatable, unpack, select, rawget

-- What a yield asks for: the numbers of request.rs.
local CONNECT, QUERY, PREPARE, EXECUTE, NEXT, ENDED = 1, 3, 4, 5, 8, 9

-- Has a part of the API add what `own` has not, when that is asked for.
local function extended(own, part, api)
   return setmetatable(own, { __index = function(_, name)
      host.part(part, api or own)
      return rawget(own, name)
   end })
end

local opt = {}

sysbench = {
   version = "1.1.0",
   version_string = "sysbench 1.1.0 (dbdyno)",
   tid = host.tid,
   opt = opt,
   hooks = {},
   error = { NONE = 0, RESTART_EVENT = 1 },
   rand = host.rand,
   cmdline = {
      command = host.command, script_path = host.script_path, argv = {}, options = {}, commands = {},
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
}
local sql = sysbench.sql

-- Fields that objects may not have have values here: a missing one loads a part.
local Connection = { generation = 0, epoch = 0, error = sql.error.NONE, bulk = false, gone = false }
Connection.__index = Connection
local Statement = { count = 0, closed = false, id = false }
Statement.__index = Statement
local api = extended({ Connection = Connection, Statement = Statement }, "rare")
extended(Connection, "rare", api)
extended(Statement, "rare", api)
extended(sysbench, "reports", api)

-- Libraries and the functions of before version 1.0 are made when they are first asked for. Options are globals too, unless
-- the script has one of that name.
dofile, loadfile, print = nil, nil, nil
setmetatable(_G, { __index = function(_, name)
   local value = host.global(name, api)
   if value == nil then value = opt[name] end
   return value
end })

-- Texts only: bytecode can do anything to the process. Finalizers would run outside of the step's limits.
local load = load
local function as_text(chunk, name, _, ...) return load(chunk, name, "t", ...) end
_G.load = as_text
function _G.loadstring(text, name) return load(text, name or text, "t") end
string.dump, newproxy = nil, nil

-- What a pattern may cost at most, as a power of the text's length; beyond this the host matches it, which can end.
local QUICK = 1e7
local gsub, quantifiers, known = string.gsub, {}, 0
local function is_quick(text, pattern)
   if type(text) ~= "string" or type(pattern) ~= "string" then return true end
   local count = quantifiers[pattern]
   if not count then
      if known == 1000 then quantifiers, known = {}, 0 end
      count = select(2, gsub(pattern, "[*+-]", ""))
      quantifiers[pattern], known = count, known + 1
   end
   return (#text + 1) ^ (count + 1) * (#pattern + 1) < QUICK
end
local of_host = extended({}, "patterns")
for _, name in ipairs({ "find", "match", "gmatch", "gsub" }) do
   local native = string[name]
   string[name] = function(text, pattern, ...)
      if is_quick(text, pattern) then return native(text, pattern, ...) end
      return of_host[name](text, pattern, ...)
   end
end

-- An endless loop inside pcall ends too.
local function unless_over(ok, ...)
   if not ok and host.is_over() then error((...), 0) end
   return ok, ...
end
function _G.pcall(...) return unless_over(pcall(...)) end
function _G.xpcall(...) return unless_over(xpcall(...)) end

---------------------------------------------------------------------------------------------------------- results

-- Rows of a text query, kept by the host until the connection's next query.
local Result = { prepared = false }
Result.__index = Result

function Result:fetch_row()
   if self.prepared then
      error("the rows of this prepared statement were counted and not kept: query() reads them", 2)
   end
   return host.row(self.connection.id, self.generation)
end

function Result:free() end

--------------------------------------------------------------------------------------------- prepared statements

local Parameter = { maxlen = false }
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
      if kind == "int" then value = value < 0 and value + -value % 1 or value - value % 1 end
   end
   self.value = value
end

function Parameter:set_rand_str(template)
   local value = host.string(template)
   if self.maxlen and #value > self.maxlen then value = value:sub(1, self.maxlen) end
   self.value = value
end

-- Kinds of parameters, by the numbers of their types.
local KINDS = { "int", "int", "int", "int", "number", "number", [11] = "text", [12] = "text" }

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
      error("the connection was opened again: prepare its statements again, in before_restart_event", 2)
   end
   if not id and host.reads_rows then return con:query(self:text()) end
   if not id then
      rows, class, errno, state, message = yield(QUERY, con.id, self:text(), true)
   elseif count == 1 then
      rows, class, errno, state, message = yield(EXECUTE, con.id, id, 1, params[1].value)
   elseif count == 2 then
      rows, class, errno, state, message = yield(EXECUTE, con.id, id, 2, params[1].value, params[2].value)
   else
      rows, class, errno, state, message = yield(EXECUTE, con.id, id, count, values(params, count))
   end
   if rows == nil then api.fail(con, self.query, class, errno, state, message) end
   if rows < 0 then return nil end
   local result = self.result
   result.nrows = rows
   return result
end

------------------------------------------------------------------------------------------------------ connections

function Connection:query(query)
   query = tostring(query)
   local rows, class, errno, state, message = yield(QUERY, self.id, query, false, self.generation + 1)
   if rows == nil then api.fail(self, query, class, errno, state, message) end
   if rows < 0 then return nil end
   self.generation = self.generation + 1
   return setmetatable({ connection = self, generation = self.generation, nrows = rows, nfields = class }, Result)
end

function Connection:query_row(query)
   local result = self:query(query)
   local row = result and result:fetch_row()
   if row then return unpack(row, 1, result.nfields) end
   return nil
end

function Connection:prepare(query)
   -- Fields that each execution reads are its own: a look into the metatable takes longer.
   local statement = { connection = self, query = query, params = {}, epoch = self.epoch, closed = false }
   setmetatable(statement, Statement)
   statement.result = setmetatable({ connection = self, prepared = true, nrows = 0, nfields = 0 }, Result)
   -- Rows that a script reads come as text only.
   if not host.text_only and not (host.reads_rows and api.asks_for_rows(query)) then
      local id, fields, errno, state, message = yield(PREPARE, self.id, query)
      if id == nil then api.fail(self, query, fields, errno, state, message) end
      -- Below 0: the server prepares no such statement, which is then sent as text.
      if id >= 0 then
         statement.id, statement.result.nfields = id, fields
         return statement
      end
   end
   statement.parts = api.parts_of(query)
   return statement
end

local Driver = {}
Driver.__index = Driver

function Driver:name() return host.driver end

function Driver:connect()
   local con = setmetatable({ epoch = 0 }, Connection)
   local id, class, errno, state, message = yield(CONNECT)
   if id == nil then api.fail(con, "connect", class, errno, state, message) end
   con.id = id
   return con
end

function sql.driver(name)
   if name and name ~= host.driver then
      error("the database is reached as " .. host.driver .. ", not as " .. tostring(name), 2)
   end
   return setmetatable({}, Driver)
end

------------------------------------------------------------------------------------------------- life of a thread

-- An error with where it was raised; a request to begin again passes.
local function traced(err)
   if type(err) == "table" and err.errcode ~= nil then return err end
   return { text = tostring(err), trace = host.traceback(), is_sql = type(err) == "string" and err == api.last_sql_error }
end

function api.thread()
   local tid = sysbench.tid
   local thread_init, thread_run = rawget(_G, "thread_init"), rawget(_G, "thread_run")
   if thread_init then thread_init(tid) end
   if not yield(NEXT) then return api.done() end
   if thread_run then
      local ok, result = xpcall(thread_run, traced, tid)
      if not ok then api.went_badly(result) end
      return yield(ENDED)
   end
   while true do
      local ok, result = xpcall(event, traced, tid)
      if not ok then
         api.went_badly(result)
      elseif result then
         return yield(ENDED)
      elseif not yield(NEXT) then
         return api.done()
      end
   end
end

function api.done()
   local thread_done = rawget(_G, "thread_done")
   if thread_done then thread_done(sysbench.tid) end
end

return api
