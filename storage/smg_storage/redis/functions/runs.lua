-- Who is at which response, what its stream said, keys of the client's choice, and what is over.

-- The set of runs says when somebody has to look at one; in a cluster it lies elsewhere, and is put right there by who looks.
local function look_at(a, until_us)
  if a.alone then
    call('ZADD', a.runs, 'XX', until_us, a.run)
  end
end

function F.claim(a)
  local k = key(a, a.g, 'resp', a.id)
  if not live(a, k) then
    return { 'none' }
  end
  local row = call('HMGET', k, 's', 'o', 'u', 'q')
  if FINAL[row[1]] or (row[2] ~= '' and tonumber(row[3]) > a.at) then
    return { 'none' }
  end
  call('HSET', k, 'o', a.owner, 'u', a.until_us)
  look_at(a, a.until_us)
  return { 'ok', call('HINCRBY', k, 'k', 1), row[4] }
end

local function holds(a, k)
  if not live(a, k) then
    return false
  end
  local row = call('HMGET', k, 's', 'o', 'k')
  return not FINAL[row[1]] and row[2] == a.owner and tonumber(row[3]) == a.token
end

function F.renew(a)
  local k = key(a, a.g, 'resp', a.id)
  if not holds(a, k) then
    return no('lease', a.id)
  end
  call('HSET', k, 'u', a.until_us)
  look_at(a, a.until_us)
  return { 'ok', call('HGET', k, 'q') }
end

function F.release(a)
  local k = key(a, a.g, 'resp', a.id)
  if holds(a, k) then
    call('HSET', k, 'o', '', 'u', '0')
    look_at(a, '0')
  end
  return { 'ok' }
end

function F.cancel(a)
  local k = key(a, a.g, 'resp', a.id)
  if not live(a, k) then
    return { 'none' }
  end
  if not FINAL[call('HGET', k, 's')] then
    call('HSET', k, 'q', '1')
  end
  return { 'ok', row_of(a, k) }
end

-- Of a response no more than who is at it.
function F.run(a)
  local k = key(a, a.g, 'resp', a.id)
  if not live(a, k) then
    return { 'none' }
  end
  return { 'ok', call('HMGET', k, 's', 'o', 'k', 'u', 'q', 'f') }
end

function F.runs_due(a)
  return { 'ok', call('ZRANGEBYSCORE', a.runs, '-inf', a.upto, 'LIMIT', a.skip, a.limit) }
end

function F.runs_note(a)
  for _, run in ipairs(a.gone) do
    call('ZREM', a.runs, run)
  end
  for _, run in ipairs(a.later) do
    call('ZADD', a.runs, run[1], run[2])
  end
  return { 'ok' }
end

function F.events_add(a)
  local k, ev, ex = key(a, a.g, 'resp', a.id), key(a, a.g, 'ev', a.id), key(a, a.g, 'ex', a.id)
  if a.token ~= 0 then
    local row = live(a, k) and call('HMGET', k, 's', 'k')
    if not row or FINAL[row[1]] or tonumber(row[2]) ~= a.token then
      return no('lease', a.id)
    end
  end
  if #a.blobs == 0 then
    return { 'ok' }
  end
  local x = call('HGET', ev, 'x')
  if x and over(a, x) then
    call('DEL', ev, ex)
    x = nil
  end
  if not x then
    x = a.x
    call('HSET', ev, 'x', x)
  end
  for _, blob in ipairs(a.blobs) do
    if call('HSETNX', ev, blob[1], blob[2] .. ' ' .. a.v[blob[3]]) == 1 then
      call('ZADD', ex, blob[2], blob[1])
    end
  end
  lasts(a, ev, x)
  lasts(a, ex, x)
  return { 'ok' }
end

function F.events_read(a)
  local ev = key(a, a.g, 'ev', a.id)
  if not live(a, ev) then
    return { 'ok', {} }
  end
  local out, bytes = {}, 0
  local ex = key(a, a.g, 'ex', a.id)
  local part = call('ZRANGEBYSCORE', ex, '(' .. a.after, '+inf', 'WITHSCORES', 'LIMIT', 0, a.limit)
  for at = 1, #part, 2 do
    -- Before a payload stand its last number, a space, and how it is kept.
    bytes = bytes + call('HSTRLEN', ev, part[at]) - #part[at + 1] - 2
    if bytes > a.bytes_max and #out > 0 then
      break
    end
    out[#out + 1] = { tonumber(part[at]), call('HGET', ev, part[at]) }
  end
  return { 'ok', out }
end

-- `a.k` is the key of the mark. Whether its response is there is 1 or 0, or -1 if that is known in another slot.
function F.reserve(a)
  local row = call('HMGET', a.k, 'd', 'r', 'x', 't')
  if not row[1] or over(a, row[3]) then
    call('HSET', a.k, 'd', a.d, 'r', a.id, 't', a.t, 'x', a.x)
    lasts(a, a.k, a.x)
    return { 'ok', 'new', '', 0 }
  end
  local there = -1
  if a.alone then
    there = live(a, key(a, row[4], 'resp', row[2])) and 1 or 0
  end
  return { 'ok', row[1] == a.d and 'same' or 'different', row[2], there }
end

function F.release_key(a)
  if call('HGET', a.k, 'r') == a.id then
    call('DEL', a.k)
  end
  return { 'ok' }
end

-- A key for a response that is about to be written in another slot.
function F.idem_take(a)
  local row = call('HMGET', a.k, 'd', 'r', 'x')
  if row[1] and not over(a, row[3]) and (row[1] ~= a.d or row[2] ~= a.id) then
    return no('idempotency', a.id)
  end
  call('HSET', a.k, 'd', a.d, 'r', a.id, 't', a.t, 'x', a.x)
  lasts(a, a.k, a.x)
  return { 'ok' }
end
