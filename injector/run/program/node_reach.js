'use strict';
// perfjit record: what this process starts by node's path gets the words that switch V8's code log on.
const child_process = require('child_process'), fs = require('fs'), threads = require('worker_threads');
const path = process.execPath, isReach = word => word.startsWith('--require=') && word.endsWith('/settings/node/reach.js');
const isPlaced = process.execArgv.some(word => /^--perf-prof-path=.*[/]perfjit-[^/]*[/]dumps$/.test(word));
// A process that was given an environment of its own has as words what NODE_OPTIONS has for others.
const options = process.env.NODE_OPTIONS || '', isCarried = !options.includes('--perf-prof');
const isOption = word => /^--(perf-prof|perf-basic-prof|perf-prof-unwinding-info|interpreted-frames-native-stack)$/.test(word);
const carried = [...new Set([...options.split(' '), ...process.execArgv].filter(isOption))];
const isOwn = word => isReach(word) || /^--(log-code$|log-source-code$|logfile=|log-deopt$|redirect-code-traces)/.test(word) ||
    (isPlaced && /^--(perf-prof|interpreted-frames-native-stack$)/.test(word)) || (isCarried && isOption(word));
const words = process.execArgv.filter(isOwn), ended = __filename.replace('node/reach.js', 'ended');
for (let at; (at = process.execArgv.findIndex(isReach)) >= 0;)
    process.execArgv.splice(at, 1);
const without = options => options.replace(/^(--(perf-prof|perf-basic-prof|perf-prof-unwinding-info|interpreted-frames-native-stack)( |$))+/, '');
const isOver = () => {
    if (fs.existsSync(__filename) && !fs.existsSync(ended))
        return false;
    if (process.env.NODE_OPTIONS)
        process.env.NODE_OPTIONS = without(process.env.NODE_OPTIONS);
    return true;
};
const isNode = file => {
    try {
        return file === path || (file[0] === '/' && fs.realpathSync(file) === fs.realpathSync(path));
    } catch {
        return false;
    }
};
const added = options => [...words, ...carried.filter(word => !words.includes(word) && !`${options || ''}`.split(' ').includes(word))];
const reached = (args, options) => isOver() ? args.filter(word => !isOwn(word)) : [...added(options).filter(word => !args.includes(word)), ...args];
// yarn puts a script into PATH that starts node by its path: the stand-in for that node goes in front of it.
// That is by the path as it was given: __filename has no symbolic links.
const bin = (words.find(isReach) || `--require=${__filename}`).slice('--require='.length).replace('node/reach.js', 'bin');
const isForStandIn = file => {
    try {
        const called = fs.statSync(file).size < 4096 && /^#!\/bin\/sh\s+exec "?([^"\s]+)"? "\$@"\s*$/.exec(fs.readFileSync(file, 'utf8'));
        return called && isNode(called[1]) && isNode(fs.readFileSync(`${bin}/../node.words`, 'utf8').split('\n')[0]);
    } catch {
        return false;
    }
};
const places = text => {
    const all = text.split(':'), at = all.findIndex(place => fs.existsSync(`${place}/node`));
    return at >= 0 && at < all.indexOf(bin) && isForStandIn(`${all[at]}/node`) ? [...all.slice(0, at), bin, ...all.slice(at)].join(':') : text;
};
const changed = (name, value) => name === 'NODE_OPTIONS' && isOver() ? without(value) : name === 'PATH' && !isOver() ? places(value) : value;
const handed = options => {
    const names = ['NODE_OPTIONS', 'PATH'].filter(name => options && options.env && typeof options.env[name] === 'string');
    const others = names.map(name => [name, changed(name, options.env[name])]).filter(([name, value]) => value !== options.env[name]);
    const env = {}; // with what is inherited, as node takes it
    for (const name in others.length ? options.env : {})
        env[name] = options.env[name];
    return others.length ? { ...options, env: Object.assign(env, Object.fromEntries(others)) } : options;
};
const { spawn } = child_process.ChildProcess.prototype;
child_process.ChildProcess.prototype.spawn = function (options) {
    if (options && Array.isArray(options.args) && isNode(options.file)) {
        const pair = [...(options.envPairs || [])].reverse().find(pair => `${pair}`.startsWith('NODE_OPTIONS='));
        options.args = [options.args[0], ...reached(options.args.slice(1), pair && pair.slice('NODE_OPTIONS='.length))];
    }
    if (options && Array.isArray(options.envPairs))
        options.envPairs = options.envPairs.map(pair => pair.replace(/^(NODE_OPTIONS|PATH)=([^]*)/, (_, name, value) => `${name}=${changed(name, value)}`));
    return spawn.call(this, options);
};
for (const name of ['spawnSync', 'execFileSync', 'execSync']) {
    const call = child_process[name];
    child_process[name] = { [name](file, ...rest) {
        rest = rest.map(handed);
        const options = rest.find(one => one && !Array.isArray(one));
        if (name !== 'execSync' && isNode(file) && !(options && options.shell))
            rest = [reached(Array.isArray(rest[0]) ? rest[0] : [], ((options && options.env) || process.env).NODE_OPTIONS), options];
        return call.call(this, file, ...rest);
    } }[name];
}
// V8's flags are of the whole process. A thread with words of its own does not read this file by itself.
threads.Worker = new Proxy(threads.Worker, { construct(target, [script, options, ...rest], made) {
    if (isOver()) {
        require('v8').setFlagsFromString('--no-log');
        options = { ...options, execArgv: (options && Array.isArray(options.execArgv) ? options.execArgv : process.execArgv).filter(word => !isOwn(word)) };
    } else if (options && Array.isArray(options.execArgv)) {
        options = { ...options, execArgv: [...words.filter(isReach), ...options.execArgv] };
    }
    return Reflect.construct(target, [script, options, ...rest], made);
} });
require('module').syncBuiltinESMExports();
