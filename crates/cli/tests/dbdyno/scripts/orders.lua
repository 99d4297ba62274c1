#!/usr/bin/env sysbench
-- Orders of a warehouse in the way of TPC-C, with the calls of the API that scripts of that kind make.
local ffi = require("ffi")

ffi.cdef("void sb_counter_inc(int, sb_counter_type);")

if sysbench.cmdline.command == nil then
   error("Command is required. Supported commands: prepare, run, cleanup, help")
end

sysbench.cmdline.options = {
   scale = { "Warehouses", 1 },
   tables = { "Number of sets of tables", 1 },
   trx_level = { "Transaction isolation", "RC" },
   report_csv = { "Report in CSV", "no" },
}

local DISTRICTS = 10
local TABLES = { "warehouse", "district", "orders", "new_orders", "order_line" }

local function connect()
   local con = sysbench.sql.driver():connect()
   if sysbench.sql.driver():name() == "mysql" then
      con:query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
   end
   return con
end

local function create(con, t)
   con:query("CREATE TABLE warehouse" .. t .. " (w_id INT PRIMARY KEY, w_ytd DECIMAL(12,2))")
   con:query("CREATE TABLE district" .. t .. " (d_w_id INT, d_id INT, d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id))")
   con:query("CREATE TABLE orders" .. t .. " (o_w_id INT, o_d_id INT, o_id INT, o_ol_cnt INT, PRIMARY KEY (o_w_id, o_d_id, o_id))")
   con:query("CREATE TABLE new_orders" .. t .. " (no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id))")
   con:query("CREATE TABLE order_line" .. t ..
      " (ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_amount DECIMAL(6,2), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))")
end

local function fill(con, t, w)
   con:query(string.format("INSERT INTO warehouse%d VALUES (%d, 300000)", t, w))
   con:bulk_insert_init("INSERT INTO district" .. t .. " (d_w_id, d_id, d_ytd, d_next_o_id) VALUES")
   for d = 1, DISTRICTS do con:bulk_insert_next(string.format("(%d, %d, 30000, 31)", w, d)) end
   con:bulk_insert_done()
   local lines = {}
   con:bulk_insert_init("INSERT INTO orders" .. t .. " VALUES")
   for d = 1, DISTRICTS do
      for o = 1, 30 do
         lines[#lines + 1] = { d, o, sysbench.rand.uniform(5, 15) }
         con:bulk_insert_next(string.format("(%d, %d, %d, %d)", w, d, o, lines[#lines][3]))
      end
   end
   con:bulk_insert_done()
   con:bulk_insert_init("INSERT INTO new_orders" .. t .. " VALUES")
   for _, line in ipairs(lines) do
      if line[2] > 21 then con:bulk_insert_next(string.format("(%d, %d, %d)", w, line[1], line[2])) end
   end
   con:bulk_insert_done()
   con:bulk_insert_init("INSERT INTO order_line" .. t .. " VALUES")
   for _, line in ipairs(lines) do
      for number = 1, line[3] do
         local amount = sysbench.rand.uniform_double() * 9999
         con:bulk_insert_next(string.format("(%d, %d, %d, %d, %.2f)", w, line[1], line[2], number, amount))
      end
   end
   con:bulk_insert_done()
end

function prepare()
   local con = connect()
   for t = 1, sysbench.opt.tables do
      print("Creating tables: " .. t)
      create(con, t)
      for w = 1, sysbench.opt.scale do fill(con, t, w) end
   end
end

function cleanup()
   local con = connect()
   for t = 1, sysbench.opt.tables do
      for _, name in ipairs(TABLES) do con:query("DROP TABLE IF EXISTS " .. name .. t) end
   end
end

function thread_init() con = connect() end
function thread_done() con:disconnect() end

local function new_order(t, w, d)
   con:query("BEGIN")
   local next_id = tonumber((con:query_row(string.format(
      "SELECT d_next_o_id FROM district%d WHERE d_w_id = %d AND d_id = %d FOR UPDATE", t, w, d))))
   con:query(string.format("UPDATE district%d SET d_next_o_id = %d WHERE d_w_id = %d AND d_id = %d", t, next_id + 1, w, d))
   local count = sysbench.rand.uniform(5, 15)
   con:query(string.format("INSERT INTO orders%d VALUES (%d, %d, %d, %d)", t, w, d, next_id, count))
   con:query(string.format("INSERT INTO new_orders%d VALUES (%d, %d, %d)", t, w, d, next_id))
   for number = 1, count do
      con:query(string.format("INSERT INTO order_line%d VALUES (%d, %d, %d, %d, 1.5)", t, w, d, next_id, number))
   end
   if sysbench.rand.uniform(1, 20) == 1 then
      ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
      con:query("ROLLBACK")
   else
      con:query("COMMIT")
   end
end

local function payment(t, w, d)
   local amount = sysbench.rand.uniform(1, 5000)
   con:query("BEGIN")
   con:query(string.format("UPDATE warehouse%d SET w_ytd = w_ytd + %d WHERE w_id = %d", t, amount, w))
   con:query(string.format("UPDATE district%d SET d_ytd = d_ytd + %d WHERE d_w_id = %d AND d_id = %d", t, amount, w, d))
   con:query("COMMIT")
end

function event()
   local t, w = sysbench.rand.uniform(1, sysbench.opt.tables), sysbench.rand.uniform(1, sysbench.opt.scale)
   local d = sysbench.rand.uniform(1, DISTRICTS)
   if sysbench.rand.uniform(1, 2) == 1 then new_order(t, w, d) else payment(t, w, d) end
end

function sysbench.hooks.before_restart_event() con:query("ROLLBACK") end

function sysbench.hooks.report_intermediate(stat)
   if sysbench.opt.report_csv == "yes" then sysbench.report_csv(stat) else sysbench.report_default(stat) end
end
