// A program with many functions that V8 compiles: some hundred classes made from text, called in turn for some seconds.
'use strict';
const classes = [];
for (let i = 0; i < 400; i++) {
  classes.push(new Function(`
    return class Shape${i} {
      constructor(x) { this.x = x; }
      area(y) { return this.x * y + ${i}; }
      scale(n) { let sum = 0; for (let k = 0; k < n; k++) sum += this.area(k % ${i + 2}); return sum; }
      describe() { return 'shape ' + this.x + ':' + this.scale(40); }
    };`)());
}
const end = Date.now() + 4000;
let total = 0;
while (Date.now() < end) {
  for (let i = 0; i < classes.length; i++) {
    const shape = new classes[i](i);
    total += shape.scale(200) + shape.describe().length;
  }
}
if (!Number.isFinite(total)) process.exit(1);
