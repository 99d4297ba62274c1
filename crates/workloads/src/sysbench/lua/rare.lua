-- What few events need: errors, bulk INSERTs, statements as text, commands, and the end of connections.
local host, api = ...

local Connection, Statement = api.Connection, api.Statement
setmetatable(api, nil)
setmetatable(Connection, nil)
setmetatable(Statement, nil)

local sql, hooks, yield = sysbench.sql, sysbench.hooks, coroutine.yield
local concat, format = table.concat, string.format
local CONNECT, DISCONNECT, FORGET, FAILED, RESTART = 1, 2, 6, 10, 11

----------------------------------------------------------------------------------------------------------- errors

api.last_sql_error = false

-- What follows a failed statement: an event that begins again, or an error. The text of the last one is kept: an error that is
-- this very text has that statement's class.
function api.fail(con, query, class, errno, state, message)
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
   api.last_sql_error = format("SQL error, errno = %d, state = '%s': %s", errno, state, message)
   error(api.last_sql_error, 0)
end

local function begins_again(result)
   return type(result) == "table" and result.errcode == sysbench.error.RESTART_EVENT
end

local function begin_again(result)
   yield(RESTART, tostring(result.sql_errno or ""), tostring(result.sql_errmsg or "a request of the script"))
end

-- What xpcall returns of a hook that fails.
local function kept(err) return begins_again(err) and err or { text = tostring(err), trace = host.traceback() } end

-- Takes what xpcall returned of an event that failed. While a lost connection cannot be opened again, the hook that prepares
-- its statements fails too: each time is an attempt of the event.
function api.went_badly(result)
   -- Without memory there is no handler.
   if type(result) ~= "table" then result = { text = tostring(result) } end
   while begins_again(result) do
      local ok, err = true, nil
      if hooks.before_restart_event then ok, err = xpcall(hooks.before_restart_event, kept, result) end
      if ok or begins_again(err) then begin_again(result) end
      if ok then
         api.last_sql_error = false
         return
      end
      result = err
   end
   yield(FAILED, result.is_sql or false, result.text or "error code " .. tostring(result.errcode), result.trace or "")
   api.last_sql_error = false
end

----------------------------------------------------------------------------------------------- statements as text

-- A text in parts: between them go the parameters.
function api.parts_of(query)
   local parts, from = {}, 1
   while true do
      local at = query:find("?", from, true)
      parts[#parts + 1] = query:sub(from, at and at - 1 or nil)
      if not at then return parts end
      from = at + 1
   end
end

function api.asks_for_rows(query)
   local word = tostring(query):lower():match("^[%s(]*(%a+)")
   return word == "select" or word == "with" or word == "show" or word == "values"
end

local function literal(value)
   if value == nil then return "NULL" end
   if type(value) == "number" then
      return value % 1 == 0 and format("%.0f", value) or format("%.17g", value)
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

------------------------------------------------------------------------------------------ statements, connections

function Statement:bind_result(...) end

function Statement:next_result() return nil end

function Statement:close()
   if not self.closed and self.id and self.epoch == self.connection.epoch then
      yield(FORGET, self.connection.id, self.id)
   end
   self.closed = true
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
   if id == nil then api.fail(self, "reconnect", class, errno, state, message) end
   self.gone, self.epoch = nil, self.epoch + 1
   return true
end

function Connection:more_results() return false end

function Connection:next_result() return nil end

--------------------------------------------------------------------------------------------------------- commands

function api.init()
   local init = rawget(_G, "init")
   if init then init() end
end

function api.finish()
   local done = rawget(_G, "done")
   if done then done() end
   if api.report_end then api.report_end() end
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
