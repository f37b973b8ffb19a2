// Loaded before a server: whatever it listens on becomes a port of the loopback that the system chooses, and is said.
const net = require('node:net');

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...words) {
  const ready = words.find((word) => typeof word === 'function');
  this.once('listening', () => process.stderr.write(`listening on 127.0.0.1:${this.address().port}\n`));
  return listen.call(this, { port: 0, host: '127.0.0.1' }, ready);
};
