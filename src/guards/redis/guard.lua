-- One atomic step: compare the token with the mark, then carry out the commands or nothing.
-- KEYS[1] the mark, a hash; KEYS[2 …] the keys of the commands.
-- ARGV: token, kind (exclusive, shared, or barrier: raises and is never refused), number of commands, then for each its number of words and the words.
-- Answers {1, mark, refused, replies …} or {0, mark, refused}.
local offered = tonumber(ARGV[1])
local held = redis.call('HMGET', KEYS[1], 'token', 'refused')
local seen = held[1] or '0'
local refused = held[2] or '0'

if offered < tonumber(seen) and ARGV[2] ~= 'barrier' then
  refused = redis.call('HINCRBY', KEYS[1], 'refused', 1)
  redis.call('HSET', KEYS[1], 'refused_token', ARGV[1])
  return {0, seen, refused}
end

-- The text of the token is stored as it came: Lua would write a large number as 9.007e+15.
if ARGV[2] ~= 'shared' and offered > tonumber(seen) then
  redis.call('HSET', KEYS[1], 'token', ARGV[1])
end

local replies = {1, seen, refused}
local at = 4
for number = 1, tonumber(ARGV[3]) do
  local words = {}
  local count = tonumber(ARGV[at])
  for offset = 1, count do
    words[offset] = ARGV[at + offset]
  end
  replies[3 + number] = redis.call(unpack(words))
  at = at + count + 1
end
return replies
