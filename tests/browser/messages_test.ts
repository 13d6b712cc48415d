/** What can be done with a message: a file attached, its text changed, sent again; and the widths. */
import { browserTest } from "./browser.ts";
import { runWith, scripted, startPageServer, startRun } from "./runs.ts";

browserTest("a file is attached, a message is changed and sent again, a run is exported", async (browser) => {
  const server = await browser.use(startPageServer());
  const plan = JSON.stringify(scripted([{ text: "First." }, { text: "Second." }, { text: "Third." }]));
  const waits = await startRun(server, scripted([{ text: "late", delay_ms: 600_000 }]), "Elsewhere");
  await browser.run(async ({ page, step, look, tabTo }, { url, plan }) => {
    await page.goto(url);
    const prompt = page.getByRole("textbox", { name: "Prompt" });
    const conversation = page.getByRole("log", { name: "Conversation" });
    await page.getByText(/✓ \d+ modules/).waitFor(); // the demo plan is there
    await page.getByRole("textbox", { name: "Plan, as YAML or JSON" }).fill(plan);
    await step("a file says its size and tokens before it is sent", async () => {
      const { Buffer } = globalThis as unknown as { Buffer: { from(text: string): Uint8Array } };
      const buffer = Buffer.from("Water the ferns twice.\n");
      await page.getByLabel("Files to attach").setInputFiles([
        { name: "garden.txt", mimeType: "text/plain", buffer: buffer as never },
      ]);
      await page.getByRole("list", { name: "Attached" }).getByText("23 B, about 6 tokens").waitFor();
      await look("attached");
    });
    await step("what is neither text nor a picture is refused with the reason", async () => {
      const { Buffer } = globalThis as unknown as { Buffer: { from(bytes: number[]): Uint8Array } };
      await page.getByLabel("Files to attach").setInputFiles([
        { name: "a.zip", mimeType: "application/zip", buffer: Buffer.from([0x50, 0x4b, 0, 255]) as never },
      ]);
      await page.getByRole("alert").getByText("Cannot attach a.zip").waitFor();
      await page.getByRole("alert").getByRole("button", { name: "close" }).click();
    });
    await step("it goes along, and is in the conversation", async () => {
      await prompt.fill("What is in the file?");
      await prompt.press("Enter");
      await conversation.getByText("First.").waitFor();
      await conversation.getByText("Water the ferns twice.").waitFor();
      if (await page.getByRole("list", { name: "Attached" }).count() > 0) {
        throw new Error("it stays attached");
      }
    });
    await step("a second message is changed: what it was is gone from the conversation", async () => {
      await prompt.fill("One more thing");
      await prompt.press("Enter");
      await conversation.getByText("Second.").waitFor();
      await conversation.getByText("completed").nth(1).waitFor();
      const edit = page.getByRole("button", { name: "edit" }).nth(1);
      await edit.focus();
      await edit.press("Enter");
      if (await prompt.inputValue() !== "One more thing") throw new Error(await prompt.inputValue());
      await page.getByText("This takes the place of an earlier message").waitFor();
      await look("editing");
      await prompt.fill("Another thing");
      await prompt.press("Enter");
      await conversation.getByText("Another thing").waitFor();
      await conversation.getByText("completed").nth(1).waitFor();
      if (await conversation.getByText("One more thing").count() > 0) throw new Error("it is still there");
    });
    await step("the run is exported", async () => {
      for (const [name, end] of [["Markdown", ".md"], ["JSON", ".json"]] as const) {
        const downloading = page.waitForEvent("download");
        await conversation.getByRole("button", { name }).last().press("Enter");
        const file = (await downloading).suggestedFilename();
        if (!file.endsWith(end)) throw new Error(file);
      }
    });
    await step("the history finds a run by its prompt", async () => {
      await page.getByRole("button", { name: "history" }).click();
      const dialog = page.getByRole("dialog", { name: "History" });
      await dialog.getByRole("searchbox").fill("another THING");
      await dialog.getByRole("button", { name: "Another thing", exact: true }).waitFor();
      await dialog.getByRole("button", { name: "Elsewhere", exact: true }).waitFor({ state: "detached" });
      await look("history-search");
      await tabTo(dialog.getByRole("button", { name: "Close" }));
      await page.keyboard.press("Enter");
    });
    await step("the palette answers a question from the documentation", async () => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: /^Find/ }).fill("keep a tool in a directory");
      await page.getByRole("option", { name: /How do I keep a tool in a folder/ }).waitFor();
      await page.keyboard.press("Escape");
    });
  }, { url: server.url, plan });
  await server.post(`/v1/runs/${waits}/cancel`, { mode: "immediate" });
  await runWith(server, waits, "cancelled");
});

browserTest("nothing is cut at the width of a phone, a tablet or a large screen", async (browser) => {
  const server = await browser.use(startPageServer());
  const id = await startRun(
    server,
    scripted([{ text: "All is well" }]),
    "A prompt of some length to be shown",
  );
  await runWith(server, id, "completed");
  await browser.run(async ({ page, step }, url) => {
    await page.goto(url);
    await page.getByRole("log").getByText("All is well").waitFor();
    for (const width of [390, 1024, 1440]) {
      await page.setViewportSize({ width, height: 844 });
      await step(`${width} pixels`, async () => {
        const cut = await page.evaluate(
          `[...document.querySelectorAll("button, .top > *, .pane > header > *")]
          .filter((element) => element.checkVisibility() && !element.closest(".hidden-text"))
          .filter((element) => {
            const { left, right } = element.getBoundingClientRect();
            const box = element.closest(".pane, .top, body").getBoundingClientRect();
            return left < box.left - 1 || right > box.right + 1;
          })
          .map((element) => element.outerHTML.slice(0, 100))`,
        ) as string[];
        const is_wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
        if (cut.length > 0 || is_wide) throw new Error(JSON.stringify({ cut, is_wide }));
      });
    }
  }, `${server.url}/#/runs/${id}`);
});

browserTest(
  "a question shows a command as a command, and a change as what a tool would edit",
  async (browser) => {
    const folder = await Deno.makeTempDir({ prefix: "preamp-asks-" });
    try {
      const [plans, workspace] = [`${folder}/plans`, `${folder}/workspace`];
      await Deno.mkdir(plans);
      await Deno.mkdir(workspace);
      await Deno.writeTextFile(`${workspace}/poem.txt`, "Roses are red\nViolets are blue\n");
      const edit = { path: "poem.txt", old_string: "red", new_string: "white" };
      const plan = scripted([
        { tool_calls: [{ name: "edit", arguments: edit }] },
        { tool_calls: [{ name: "bash", arguments: { command: "cat poem.txt" } }] },
        { text: "Done." },
      ], {
        tools: [
          {
            module: "tool-filesystem",
            permissions: { read: ["${WORKSPACE}"], write: ["${WORKSPACE}"] },
          },
          { module: "tool-bash", permissions: { read: ["${WORKSPACE}"], run: ["cat"] } },
        ],
        hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "*", action: "ask" }] } }],
      });
      await Deno.writeTextFile(`${plans}/poet.yaml`, JSON.stringify(plan));
      await using server = await startPageServer(["--plans", plans, "--workspace", workspace]);
      const { body: { id } } = await server.post("/v1/runs", {
        plan_ref: "poet",
        prompt: "Begin",
        background: true,
      });
      await runWith(server, id, "awaiting_approval");
      await browser.run(async ({ page, step, look }, url) => {
        await page.goto(url);
        const questions = page.getByRole("region", { name: "Questions" });
        await step("the change, with what it would edit", async () => {
          await questions.getByText("Would edit poem.txt").waitFor();
          await questions.getByText("+Roses are white").waitFor();
          await look("asks-edit");
          await questions.getByRole("button", { name: "Allow", exact: true }).click();
        });
        await step("the command", async () => {
          await questions.getByText("$ cat poem.txt").waitFor();
          await look("asks-command");
          await questions.getByRole("button", { name: "Allow this command for this run" }).click();
        });
        await page.getByRole("log", { name: "Conversation" }).getByText("completed").waitFor();
        await page.goto("about:blank"); // the page asks no server that ends
      }, `${server.url}/#/runs/${id}`);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);

browserTest(
  "what a command says is shown while it runs, and Stop ends it with the second press",
  async (browser) => {
    const folder = await Deno.makeTempDir({ prefix: "preamp-live-" });
    try {
      const [plans, workspace] = [`${folder}/plans`, `${folder}/workspace`];
      await Deno.mkdir(plans);
      await Deno.mkdir(workspace);
      const command = "echo first line; echo second line; while [ ! -e done ]; do sleep 0.1; done";
      const plan = scripted([{ tool_calls: [{ name: "bash", arguments: { command } }] }, { text: "Done." }], {
        tools: [{
          module: "tool-bash",
          config: { yield_s: 55 },
          permissions: { read: ["${WORKSPACE}"], run: ["bash"] },
        }],
      });
      await Deno.writeTextFile(`${plans}/waits.yaml`, JSON.stringify(plan));
      await using server = await startPageServer(["--plans", plans, "--workspace", workspace]);
      const { body: { id } } = await server.post("/v1/runs", {
        plan_ref: "waits",
        prompt: "Begin",
        background: true,
      });
      await browser.run(async ({ page, step, look }, url) => {
        await page.goto(url);
        await step("its last lines, below its call", async () => {
          await page.getByLabel("Output of bash").getByText("second line").waitFor();
          await look("live-output");
        });
        await step("a first press waits for it, a second one ends it", async () => {
          await page.getByRole("button", { name: /^Stop/ }).press("Enter");
          const again = page.getByRole("button", { name: "Stop the tool too" });
          await again.waitFor();
          await again.press("Enter");
          await page.getByRole("log", { name: "Conversation" }).getByText("cancelled").waitFor();
        });
        await page.goto("about:blank"); // the page asks no server that ends
      }, `${server.url}/#/runs/${id}`);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);
