// What people ask of a profile, and by which clicks and keys the page of perfjit flamegraph answers: each with the number of these.
// node five_questions.js FILE.html... prints both.
const { openPage } = require("./browser.js");

// The answers of PAGE, which is as it was opened: {question: {actions, answer}}. RANGE: the share of the time that is asked for.
async function ask(page, range = [0.4, 0.5]) {
    const answers = {};
    let actions = 0;
    const press = async (key) => { actions++; await page.press(key); };
    const click = async (selector) => { actions++; await page.clickOn(selector); };
    const list = () => page.evaluate("document.getElementById('found').hidden ? [] : [...document.querySelectorAll('#found button')].slice(0, 3).map((button) => button.textContent.replace(/ +/g, ' '))");
    const details = () => page.text("#details");
    const question = async (words, answer) => {
        actions = 0;
        const said = await answer();
        answers[words] = { actions, answer: said };
        await page.press("Escape", "r");
    };
    await question("which of my functions takes most?", async () => {
        await press("m");
        return (await list())[0];
    });
    await question("who calls it?", async () => {
        await press("m");
        await click("#found button");
        await press("c");
        const [, , left, top] = await page.at("#stage");
        actions++; // pointing at the box below it
        await page.mouse("mouseMoved", left + 20, top + 2 * 20 + 8);
        return (await details()).split("\n")[0] + " " + await page.evaluate("tip.hidden ? 'none of mine' : tip.textContent.split('\\n')[0]");
    });
    await question("what ran in a tenth of the time?", async () => {
        const [, , left, top, width, height] = await page.at("#strip");
        actions++;
        await page.drag(left + width * range[0], top + height - 4, left + width * range[1], top + height - 4);
        await press("m");
        return (await details()).split("\n").slice(0, 2).join(" ") + ": " + (await list()).join(", ");
    });
    await question("which thread waited for what?", async () => {
        await press("w");
        const [most] = await list();
        await click("#found button");
        return most + "; its own: " + (await details()).split("\n").slice(0, 2).join(" ");
    });
    await question("what changed after the tier-up?", async () => {
        await press("m");
        await press(".");
        const since = [(await details()).split("\n").pop(), (await list())[0]];
        await press("o");
        return since.join(": ") + "; before: " + (await list())[0];
    });
    return answers;
}

module.exports = { ask };

if (require.main === module) (async () => {
    for (const file of process.argv.slice(2)) {
        const page = await openPage(file);
        try {
            for (const [question, { actions, answer }] of Object.entries(await ask(page))) console.log(`${file}: ${question} ${actions} actions: ${answer}`);
        } finally { await page.close(); }
    }
})();
