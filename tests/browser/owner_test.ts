/** The page of the person who has started the server: logged in by its address, with model and workspace. */
import { assertEquals } from "../assert.ts";
import { startServer } from "../e2e/program.ts";
import { fakeServer } from "../modules/providers/fake_server.ts";
import { temporaryFolder } from "../support/folder.ts";
import { browserTest } from "./browser.ts";

browserTest(
  "the printed address logs in; the coder runs in a folder on a chosen model, and a plan is saved",
  async (browser) => {
    const folder = await browser.use(temporaryFolder());
    await Deno.writeTextFile(`${folder.path}/thirsty_ferns.txt`, "Water them.");
    const home = await browser.use(temporaryFolder());
    const vendor = await browser.use(fakeServer(() =>
      Response.json({
        data: [
          { id: "claude-sonnet-5-5", display_name: "Claude Sonnet 5.5" },
          { id: "claude-haiku-4-5", display_name: "Claude Haiku 4.5" },
        ],
        has_more: false,
      })
    ));
    const env = {
      PREAMP_HOME: home.path,
      ANTHROPIC_API_KEY: "sk-test",
      ANTHROPIC_BASE_URL: vendor.url,
      OLLAMA_HOST: "127.0.0.1:1", // nothing listens there
    };
    const server = await browser.use(startServer([], { env }));
    const { url, key } = server;
    await browser.run(async ({ page, step, look }, { url, key, workspace }) => {
      const pane = page.getByRole("region", { name: "Plan", exact: true });
      const conversation = page.getByRole("log", { name: "Conversation" });
      await step("the address logs in, and the key is in no address any more", async () => {
        await page.goto(`${url}/#key=${key}`);
        await pane.getByText("✓ 6 modules").waitFor();
        if (page.url().includes(key)) throw new Error(page.url());
        await page.reload();
        await pane.getByText("✓ 6 modules").waitFor();
      });
      await step("a model is chosen from those that can run, with its price and window", async () => {
        await pane.getByRole("button", { name: "Models" }).click();
        const models = pane.getByRole("list", { name: "Models" });
        const sonnet = models.getByRole("button", {
          name: /anthropic\/claude-sonnet-5-5 \$\d+ in, \$\d+ out per M tokens · window \d/,
        });
        await sonnet.waitFor();
        await pane.getByText("ollama: no answer").waitFor();
        await look("owner-models", "plan");
        await pane.getByLabel("model", { exact: true }).fill("haiku");
        await sonnet.waitFor({ state: "detached" });
        await pane.getByLabel("model", { exact: true }).fill("sonnet");
        await sonnet.click();
        await pane.getByText(/^Claude Sonnet 5\.5: \$\d+ in/).waitFor();
        const chosen = await pane.getByLabel("model", { exact: true }).inputValue();
        if (chosen !== "anthropic/claude-sonnet-5-5") throw new Error(chosen);
        await page.keyboard.press("ArrowDown");
        await models.getByRole("button", { name: "the plan's own" }).waitFor();
        await page.keyboard.press("Escape");
        await models.waitFor({ state: "detached" });
      });
      await step("the coder is there; a model and a workspace are chosen", async () => {
        await pane.getByLabel("Plan", { exact: true }).selectOption("plan:coder");
        await pane.getByLabel("model", { exact: true }).fill("mock/theirs");
        await pane.getByLabel("workspace").fill(workspace);
        await pane.getByText("run bash").waitFor();
        await look("owner-coder");
      });
      await step("it runs there", async () => {
        const prompt = page.getByRole("textbox", { name: "Prompt" });
        await prompt.fill("Look around");
        await prompt.press("Enter");
        await conversation.getByText("**/*").click();
        await conversation.getByText("thirsty_ferns.txt").first().waitFor();
        await page.getByRole("button", { name: /^Stop/ }).click();
        await conversation.getByText("cancelled").waitFor();
      });
      await step("opened later, it has the plan of the server and continues", async () => {
        await page.getByRole("button", { name: "New conversation" }).click();
        await pane.getByLabel("Plan", { exact: true }).selectOption("plan:demo");
        await pane.getByLabel("model", { exact: true }).fill("");
        await pane.getByLabel("workspace").fill("");
        await page.getByRole("list", { name: "Earlier conversations" }).getByText("Look around").click();
        await conversation.getByText("cancelled").waitFor();
        if (!await pane.isVisible()) await page.getByRole("button", { name: "Open the plan" }).click();
        await pane.getByText("The plan of the server, as this run had it").waitFor();
        await look("owner-opened", "plan");
        const prompt = page.getByRole("textbox", { name: "Prompt" });
        await prompt.fill("And then?");
        await prompt.press("Enter");
        await page.getByRole("form", { name: "Allow edit?" }).waitFor();
        await page.getByRole("button", { name: /^Stop/ }).click();
        await conversation.locator(".run").nth(1).locator(".run-end").getByText("cancelled").waitFor();
        await page.getByRole("button", { name: "New conversation" }).click();
      });
      await step("a changed plan is saved under a name", async () => {
        await pane.getByLabel("model", { exact: true }).fill("");
        await pane.getByLabel("workspace").fill("");
        await pane.getByLabel("Plan", { exact: true }).selectOption("own");
        const editor = pane.getByRole("textbox", { name: "Plan, as YAML or JSON" });
        await editor.fill(
          "# mine\nsession: { orchestrator: loop-basic, context: context-simple }\nproviders: [provider-mock]\n",
        );
        await pane.getByText("✓ 3 modules").waitFor();
        await pane.getByRole("button", { name: "Save…" }).click();
        await pane.getByLabel("save as").fill("mine");
        await look("owner-save", "plan");
        await pane.getByRole("button", { name: "Save", exact: true }).click();
        await pane.getByRole("button", { name: "Save…" }).waitFor();
      });
    }, { url, key, workspace: folder.path });
    const saved = await Deno.readTextFile(`${home.path}/plans/mine.yaml`);
    assertEquals(saved.split("\n")[0], "# mine");
  },
);
