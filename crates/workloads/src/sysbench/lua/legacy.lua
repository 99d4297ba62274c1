-- What scripts of before sysbench 1.0 call.
local host = ...

local rand, sql = sysbench.rand, sysbench.sql

thread_id, test = host.tid, host.script_path

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
