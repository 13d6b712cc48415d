/** A run again from one of its entries with another plan, and both runs side by side. */
import { assertEquals } from "../assert.ts";
import { browserTest } from "./browser.ts";
import { runWith, scripted, startPageServer, startRun } from "./runs.ts";

browserTest(
  "a run is forked at the call whose request was read, with another system prompt, and compared",
  async (browser) => {
    const server = await browser.use(startPageServer());
    await browser.run(async ({ page, step, look }, url) => {
      const button = (name: string | RegExp) => page.getByRole("button", { name });
      await page.goto(url);
      await page.getByRole("textbox", { name: "Prompt" }).waitFor();
      await page.keyboard.press("Enter");
      await button(/^Allow$/).click();
      await step("what was sent in the second call", async () => {
        await page.getByRole("log").getByText("completed").waitFor();
        await button("What the model was sent in call 2").click();
        await page.getByRole("heading", { name: "What mock was sent in call 2 of 2" }).waitFor();
        await page.getByText("tokens, estimated").waitFor();
      });
      await step("fork from there", async () => {
        await button("Fork from here").click();
        await page.getByRole("region", { name: "What if" }).waitFor();
        await look("what-if");
      });
      await step("another system prompt, and no calculator", async () => {
        const plan = page.getByRole("textbox", { name: "Plan, as YAML or JSON" });
        const text = await plan.inputValue();
        await plan.fill(text.replace("Be brief.", "Rhyme."));
        await page.keyboard.press("Control+Enter");
      });
      await step("side by side, with the same answer", async () => {
        await page.getByText("= B does the same as A.").waitFor();
        await page.getByText('+ "You are the demo agent of Preamp. Rhyme."').waitFor();
        await look("compared-equal");
      });
      await step("from the prompt, without the tool: a difference", async () => {
        await button("Back").click();
        await page.getByRole("article").filter({ hasText: "you" }).hover();
        await button(/^try again from here/).first().click();
        const plan = page.getByRole("textbox", { name: "Plan, as YAML or JSON" });
        await page.getByRole("region", { name: "What if" }).waitFor();
        await plan.fill((await plan.inputValue()).replace("  - tool-calculator\n", ""));
        await button(/^Run from entry/).click();
        await page.getByText("≠ First difference:").waitFor();
        await page.getByText("≠ first difference").last().waitFor();
        await page.getByRole("region", { name: "Run B" }).getByText("completed").waitFor();
        await look("compared-different");
      });
      await step("the link opens the same, and the way back is the conversation", async () => {
        await page.reload();
        await page.getByText("≠ First difference:").waitFor();
        await button("Back").click();
        await page.getByRole("log").getByText("6 × 7 is 42.").waitFor();
      });
      await page.goto("about:blank"); // the page asks no server that ends
    }, server.url);
  },
);

browserTest("history, palette and keys without a mouse", async (browser) => {
  const server = await browser.use(startPageServer());
  const ends = await startRun(server, scripted([{ text: "All is well" }]), "Begin");
  await runWith(server, ends, "completed");
  const { body: { id } } = await server.post("/v1/runs", { prompt: "What is 2 × 3?", background: true });
  await runWith(server, id, "awaiting_approval");
  await browser.run(async ({ page, step, look, tabTo }, url) => {
    const dialog = (name: string) => page.getByRole("dialog", { name });
    await page.goto(url);
    const prompt = page.getByRole("textbox", { name: "Prompt" });
    await prompt.waitFor();
    await step("a key that is typed is typed", async () => {
      await prompt.fill("");
      await page.keyboard.type("h?");
      if (await prompt.inputValue() !== "h?") throw new Error(await prompt.inputValue());
    });
    await step("the palette finds by words, and moves by arrows", async () => {
      await page.keyboard.press("Control+k");
      await page.getByRole("option", { name: /run Begin/ }).waitFor();
      await look("palette");
      const box = page.getByRole("combobox", { name: /^Find/ });
      await box.fill("run_that_is_old");
      await page.getByRole("option", { name: "run run_that_is_old by its id" }).waitFor();
      await box.fill("keys");
      await page.getByRole("option", { name: /the keys/ }).waitFor();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("Enter");
      await dialog("Keys").getByText("history of runs and sessions").waitFor();
      await look("keys");
      await tabTo(page.getByRole("button", { name: "Close" }));
      await page.keyboard.press("Enter");
      await dialog("Keys").waitFor({ state: "detached" });
      // what had the focus before has it again
      await page.locator("textarea[aria-label=Prompt]:focus").waitFor();
    });
    await step("history has what waits first; deleting asks", async () => {
      await page.keyboard.press("Escape"); // leaves the prompt
      await page.keyboard.press("h");
      await dialog("History").getByText("◷ Waiting for you").waitFor();
      await look("history");
      const remove = page.getByRole("button", { name: "Delete Begin" });
      await tabTo(remove);
      await page.keyboard.press("Enter");
      await page.getByText("Nothing brings it back.").waitFor();
      await tabTo(page.getByRole("button", { name: "Delete", exact: true }));
      await page.keyboard.press("Enter");
      await remove.waitFor({ state: "detached" });
    });
    await step("what waits is opened, with its question", async () => {
      const waits = dialog("History").getByRole("button", { name: "What is 2 × 3?" }).first();
      await tabTo(waits, "Shift+Tab");
      await page.keyboard.press("Enter");
      await page.getByRole("form").filter({ hasText: "expires in" }).waitFor();
    });
    await step("the colours stay for the tab", async () => {
      await page.getByRole("log").focus();
      await page.keyboard.press("t");
      await page.reload();
      await page.locator("html[data-theme=dark]").waitFor();
      await page.getByRole("button", { name: /^Deny/ }).click();
      await page.getByRole("log").getByText("completed").waitFor();
    });
    await page.goto("about:blank"); // the page asks no server that ends
  }, server.url);
});

browserTest("the files that a run has changed are put back", async (browser) => {
  const folder = await Deno.makeTempDir({ prefix: "preamp-undo-" });
  try {
    const calls = ["kept.txt", "undone.txt"].map((path) => ({
      name: "write",
      arguments: { path, content: "by the run" },
    }));
    const plan = scripted([{ tool_calls: calls }, { text: "written" }], {
      tools: [{
        module: "tool-filesystem",
        permissions: { read: ["${WORKSPACE}"], write: ["${WORKSPACE}"] },
      }],
    });
    const [plans, workspace] = [`${folder}/plans`, `${folder}/workspace`];
    await Deno.mkdir(plans);
    await Deno.mkdir(workspace);
    await Deno.writeTextFile(`${plans}/writer.yaml`, JSON.stringify(plan));
    await using server = await startPageServer(["--plans", plans, "--workspace", workspace]);
    const { body: { id } } = await server.post("/v1/runs", { plan_ref: "writer", prompt: "Begin" });
    await runWith(server, id, "completed");
    await Deno.writeTextFile(`${workspace}/kept.txt`, "by a person since");
    await browser.run(async ({ page, step, look }, url) => {
      await page.goto(url);
      await step("the end of the run offers it, and says what was done", async () => {
        await page.getByRole("button", { name: "undo its files" }).click();
        const files = page.getByRole("list", { name: "Undone files" });
        await files.getByText(/✓ deleted.*undone\.txt/).waitFor();
        await files.getByText(/✗ not undone.*kept\.txt: it was changed since/).waitFor();
        await look("undone");
      });
      await page.goto("about:blank");
    }, `${server.url}/#/runs/${id}`);
    assertEquals((await Array.fromAsync(Deno.readDir(workspace))).map(({ name }) => name), ["kept.txt"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
