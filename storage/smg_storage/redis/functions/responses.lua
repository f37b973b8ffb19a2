-- Responses, in chains, with all that one leaves behind.
--
-- resp:<id>  s status, d completed, x end, v version, o owner, k token of the lease, u its end, q cancel, f packed
--            rest, i input, r response, b bytes of both, m bytes of the input, h digest, p what it continues, t its
--            thread, l locations, y list of the person, z member there, w work left over in other slots
-- ev:<id>    first event -> last event and payload; x end        ex:<id>  last event -> first event

local function note_run(a)
  if not a.alone or not a.bg then
    return
  end
  if FINAL[a.s] then
    call('ZREM', a.runs, a.run)
  else
    call('ZADD', a.runs, 'NX', a.until_us, a.run)
  end
end

-- A person's list outlives single responses: with each new one, what is gone of its oldest two is dropped.
local function list_person(a, y)
  for _, text in ipairs(a.alone and call('ZRANGE', y.k, 0, 1) or {}) do
    local id, thread = text:match('^(.*) (%x+)$')
    if not live(a, key(a, thread, 'resp', id)) then
      call('ZREM', y.k, text)
    end
  end
  local left_ms = call('PTTL', y.k)
  call('ZADD', y.k, y.n, y.m)
  lasts_longest(a, y.k, y.x, left_ms)
end

local function commit_refusal(a, row)
  if row and (a.only_new or FINAL[row[1]]) then
    return no('final', a.id)
  end
  if tonumber(row and row[3] or '0') ~= a.token then
    return no('lease', a.id) -- also where there is none: what was deleted meanwhile does not come back
  end
  if a.idem and a.alone then
    local mark = call('HMGET', a.idem.k, 'd', 'x', 'r')
    if mark[1] and not over(a, mark[2]) and (mark[1] ~= a.idem.d or mark[3] ~= a.id) then
      return no('idempotency', a.id)
    end
  end
  if a.c then
    return append_refusal(a)
  end
  return items_refusal(a)
end

local function count_response(a, k, sign)
  local row = call('HMGET', k, 'x', 'b')
  if row[1] then
    count(a, row[1], 'r', sign, sign * tonumber(row[2]))
  end
end

local function write_row(a, k, old)
  local version = a.version
  local lease = { a.o, a.k, a.u, a.q }
  local places = a.l
  if old then
    version = call('HINCRBY', k, 'v', 1)
    lease = call('HMGET', k, 'o', 'k', 'u', 'q')
    if places == '[]' then
      places = call('HGET', k, 'l')
    end
  end
  count_response(a, k, -1)
  call('DEL', k)
  call('HSET', k, 's', a.s, 'd', a.d, 'x', a.x, 'v', version, 'o', lease[1], 'k', lease[2], 'u', lease[3],
    'q', lease[4], 'f', a.v[a.f], 'i', a.v[a.i], 'r', a.v[a.r], 'b', a.n, 'm', a.m, 'h', a.h, 'p', a.p, 't', a.t,
    'l', places, 'y', a.y and a.y.k or '', 'z', a.y and a.y.m or '')
  if a.w then
    call('HSET', k, 'w', a.v[a.w])
  end
  lasts(a, k, a.x)
  count(a, a.x, 'r', 1, tonumber(a.n))
end

local function there_already(a, left)
  local positions = {}
  if a.c then
    positions = F.positions(a)[2]
  end
  return { 'ok', 1, positions, left or '' }
end

function F.commit(a)
  local k = key(a, a.g, 'resp', a.id)
  local row = call('HMGET', k, 's', 'h', 'k', 'x', 'w')
  if not row[1] or over(a, row[4]) then
    row = nil
  end
  if row and row[2] == a.h then
    return there_already(a, row[5])
  end
  local refusal = a.never and no('never') or commit_refusal(a, row)
  if refusal then
    return refusal
  end
  write_row(a, k, row)
  local positions = {}
  if a.c then
    positions = append(a)
  else
    keep_items(a)
  end
  locate(a, a.locs, a.g, a.id, a.x)
  note_run(a)
  if a.alone and a.y then
    list_person(a, a.y)
  end
  if a.alone and a.idem then
    call('HSET', a.idem.k, 'd', a.idem.d, 'r', a.id, 't', a.g, 'x', a.idem.x)
    lasts(a, a.idem.k, a.idem.x)
  end
  return { 'ok', 0, positions, '' }
end

-- What was left over in other slots is done.
function F.settled(a)
  call('HDEL', key(a, a.g, 'resp', a.id), 'w')
  return { 'ok' }
end

function F.row(a)
  local k = key(a, a.g, 'resp', a.id)
  local row = row_of(a, k)
  if not row then
    return { 'none' }
  end
  return { 'ok', row, call('HGET', k, 'w') or '' }
end

-- From a response to what it continues: rows, how it ended ('end', 'more', 'missing' or 'on' in another slot), where.
function F.chain(a)
  local out, count, seen, id, thread, bytes = {}, 0, {}, a.id, a.g, 0
  while true do
    if seen[id] then
      return no('cycle', id)
    end
    seen[id] = true
    local k = key(a, thread, 'resp', id)
    local row = row_of(a, k)
    if not row then
      return { 'ok', bundle(out), 'missing', id, bytes }
    end
    local more = call('HMGET', k, 'p', 't', 'b')
    bytes = bytes + tonumber(more[3])
    if bytes > a.bytes_max and (count > 0 or a.begun) then
      return { 'ok', bundle(out), 'more', id, bytes }
    end
    row[#row + 1] = id
    for _, field in ipairs(row) do
      out[#out + 1] = field
    end
    count = count + 1
    if more[1] == '' then
      return { 'ok', bundle(out), 'end', '', bytes }
    end
    if count >= a.items_max then
      return { 'ok', bundle(out), 'more', more[1], bytes }
    end
    id, thread = more[1], more[2]
    if not here(a, thread) then
      return { 'ok', bundle(out), 'on', id, bytes }
    end
  end
end

local function patched(a, k)
  for _, change in ipairs(a.changes) do
    if call('HGET', k, change[1]) ~= change[2] then
      return false
    end
  end
  return not a.r or call('HGET', k, 'r') == a.v[a.r]
end

function F.patch(a)
  local k = key(a, a.g, 'resp', a.id)
  if not live(a, k) then
    return { 'none' }
  end
  local was = call('HMGET', k, 's', 'k', 'm')
  if tonumber(was[2]) ~= a.token then
    return no('lease', a.id)
  end
  if patched(a, k) then
    return { 'ok', row_of(a, k) }
  end
  if FINAL[was[1]] or not a.from[was[1]] then
    return no('status', a.id)
  end
  count_response(a, k, -1)
  for _, change in ipairs(a.changes) do
    call('HSET', k, change[1], change[2])
  end
  if a.r then
    call('HSET', k, 'r', a.v[a.r], 'b', tonumber(was[3]) + a.n)
  end
  call('HINCRBY', k, 'v', 1)
  count_response(a, k, 1)
  lasts(a, k, call('HGET', k, 'x'))
  if a.alone and FINAL[call('HGET', k, 's')] then
    call('ZREM', a.runs, a.run)
  end
  return { 'ok', row_of(a, k) }
end

-- Answers what is left to do in other slots: locations, list and member there.
function F.resp_delete(a)
  local k = key(a, a.g, 'resp', a.id)
  local there = live(a, k)
  local row = call('HMGET', k, 'l', 'y', 'z')
  count_response(a, k, -1)
  call('DEL', k, key(a, a.g, 'ev', a.id), key(a, a.g, 'ex', a.id))
  if not row[1] then
    return { 'ok', 0, '[]', '', '' }
  end
  unlocate(a, cjson.decode(row[1]), a.g, a.id)
  if a.alone then
    call('ZREM', a.runs, a.run)
    if row[2] ~= '' then
      call('ZREM', row[2], row[3])
    end
  end
  return { 'ok', there and 1 or 0, row[1], row[2], row[3] }
end

-- A list of one person's responses; `a.k` is its key.
function F.person_add(a)
  list_person(a, a.y)
  return { 'ok' }
end

function F.person_remove(a)
  for _, text in ipairs(a.members) do
    call('ZREM', a.k, text)
  end
  return { 'ok' }
end

function F.person_page(a)
  local from = 0
  if a.after then
    local rank = call(a.newest and 'ZREVRANK' or 'ZRANK', a.k, a.after)
    if not rank then
      return no('missing', a.after_id)
    end
    from = rank + 1
  end
  return { 'ok', call(a.newest and 'ZREVRANGE' or 'ZRANGE', a.k, from, from + a.limit - 1) }
end

-- How much a tenant has; what was over by the end of a day that is over is forgotten.
function F.tenant_figures(a)
  local k, sums = a.b .. 'used', { c = 0, i = 0, r = 0, b = 0 }
  local all = call('HGETALL', k)
  for at = 1, #all, 2 do
    local day, what = all[at]:match('^(%d+) (%a)$')
    if tonumber(day) > 0 and tonumber(day) * DAY_US <= a.now then
      call('HDEL', k, all[at])
    else
      sums[what] = sums[what] + tonumber(all[at + 1])
    end
  end
  return { 'ok', sums.c, sums.i, sums.r, sums.b }
end
