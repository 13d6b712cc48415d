/** The page and its server: lost connections, restarts, reloads, keys, base paths. */
import { assert, assertEquals } from "../assert.ts";
import { startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";
import { startProxy } from "./loopback_proxy.ts";
import { runWith, scripted, startPageServer, startRun } from "./runs.ts";

/** A plan of steps with a pause before each, which then asks a person, and answers. */
const STEPS = 12;
const PLAN = scripted([
  ...Array.from({ length: STEPS }, (_, step) => ({
    text: `Step ${step + 1} of ${STEPS}.`,
    tool_calls: [{ name: "todo", arguments: { action: "list" } }],
    delay_ms: 100,
  })),
  { text: "Now I ask.", tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] },
  "It is 42.",
], {
  tools: ["tool-todo", "tool-calculator"],
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
});
const ANSWERED = [
  ...Array.from({ length: STEPS }, (_, step) => `Step ${step + 1} of ${STEPS}.`),
  "Now I ask.",
  "It is 42.",
];

browserTest("a reload and a cut connection in mid-stream lose and repeat nothing", async (browser) => {
  const server = await browser.use(startPageServer());
  const proxy = await browser.use(startProxy(server.url));
  const id = await startRun(server, PLAN);
  await browser.run(async ({ page }, url) => {
    await page.goto(url);
    await page.getByRole("log", { name: "Conversation" }).getByText("Step 2 of").waitFor();
    await page.reload();
    await page.getByRole("log", { name: "Conversation" }).getByText("Step 5 of").waitFor();
  }, `${proxy.url}/#/runs/${id}`);
  proxy.cut();
  await browser.run(async ({ page }) => {
    await page.getByRole("log", { name: "Conversation" }).getByText("Now I ask.").waitFor();
    await page.getByText("connection to the server is lost").waitFor({ state: "hidden" });
    await page.reload();
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await page.getByRole("log", { name: "Conversation" }).getByText("It is 42.").waitFor();
  });
  const texts = await browser.run(({ page }) =>
    page.getByRole("log", { name: "Conversation" }).getByText(/^(Step|Now|It is)/).allTextContents()
  );
  assertEquals(texts, ANSWERED);
  for (const fault of await browser.faults()) assert(fault.includes("net::ERR_"), fault);
});

browserTest(
  "a killed server is shown as lost; when it is back, the run continues in the page",
  async (browser) => {
    const store = await Deno.makeTempDir();
    await browser.use({ [Symbol.asyncDispose]: () => Deno.remove(store, { recursive: true }) });
    const args = ["--no-auth", "--store", `sqlite:${store}/store.db`];
    const first = await startServer(args);
    const proxy = await browser.use(startProxy(first.url));
    const id = await startRun(first, PLAN);
    await runWith(first, id, "awaiting_approval");
    await browser.run(async ({ page }, url) => {
      await page.goto(url);
      await page.getByRole("button", { name: "Allow", exact: true }).waitFor();
    }, `${proxy.url}/#/runs/${id}`);
    first.kill("SIGKILL");
    await first.ended;
    proxy.cut();
    await browser.run(async ({ page, look }) => {
      await page.getByRole("status").filter({ hasText: "connection to the server is lost" }).waitFor();
      await look("lost");
    });
    const second = await browser.use(startServer(args));
    proxy.target = second.url;
    await browser.run(async ({ page }) => {
      const lost = page.getByRole("status").filter({ hasText: "connection to the server is lost" });
      await lost.waitFor({ state: "hidden" });
      await page.getByRole("button", { name: "Allow", exact: true }).click();
      await page.getByRole("log", { name: "Conversation" }).getByText("It is 42.").waitFor();
    });
    for (const fault of await browser.faults()) assert(fault.includes("net::ERR_"), fault);
  },
);

browserTest(
  "the key is asked for, used and kept as its owner wants, and is nowhere else",
  async (browser) => {
    const server = await browser.use(startServer());
    const { url, key } = server;
    await browser.run(async ({ page, step, look, tabTo }, { url, key }) => {
      const dialog = page.getByRole("dialog", { name: "API key" });
      const box = dialog.getByLabel("API key", { exact: true });
      const places = () =>
        page.evaluate(() => JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }]));
      await page.goto(url);
      await step("an unknown key is refused", async () => {
        await dialog.waitFor();
        await look("key");
        await box.fill("pk_unknown");
        await page.keyboard.press("Enter");
        await dialog.getByText("does not know this key").waitFor();
        await look("key-unknown");
      });
      await step("the right one is used", async () => {
        await box.fill(key);
        await page.keyboard.press("Enter");
        await dialog.waitFor({ state: "hidden" });
        await page.getByRole("textbox", { name: "Prompt" }).focus();
        await page.keyboard.press("Enter");
        await tabTo(page.getByRole("button", { name: "Allow", exact: true }));
        await page.keyboard.press("Enter");
        await page.getByRole("log", { name: "Conversation" }).getByText("6 × 7 is 42.").waitFor();
        if ((await places()).includes(key)) throw new Error(await places());
      });
      await step("a reload asks again, also after the dialog was closed, and then it is kept", async () => {
        await page.reload();
        await dialog.waitFor();
        await page.keyboard.press("Escape");
        await tabTo(page.getByRole("button", { name: "Enter the key" }));
        await page.keyboard.press("Enter");
        await box.fill(key);
        await dialog.getByRole("checkbox").press("Space");
        await box.press("Enter");
        await page.getByRole("log", { name: "Conversation" }).getByText("6 × 7 is 42.").waitFor();
        await page.reload();
        await page.getByRole("log", { name: "Conversation" }).getByText("6 × 7 is 42.").waitFor();
        const [href, local] = JSON.parse(await places());
        if (JSON.stringify([href, local]).includes(key)) throw new Error(JSON.stringify([href, local]));
      });
    }, { url, key });
    assert(!server.stderr.text.includes(key), "the key is in the log");
    for (const fault of await browser.faults()) assert(fault.includes("401"), fault);
  },
);
