import { TestCoordinator } from "preamp/testing";
import * as approval from "../../modules/hooks-approval/mod.ts";
import * as filesystem from "../../modules/tool-filesystem/mod.ts";
import { assertEquals } from "../assert.ts";
import { inFolder } from "../support/folder.ts";

Deno.test("an allow by path holds for the file that is opened, not for a link of this name", () =>
  inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/docs`);
    await Deno.mkdir(`${folder}/secret`);
    await Deno.writeTextFile(`${folder}/secret/key`, "k");
    await Deno.symlink("../secret/key", `${folder}/docs/link.md`);
    await Deno.symlink("../secret", `${folder}/docs/deep`);
    const coordinator = new TestCoordinator({ permissions: { read: [folder], write: [folder] } });
    await filesystem.mount(coordinator, { dialect: "plain" });
    const rules = [`docs/*`, `${folder}/docs/*`].map((path) => ({
      tool: "write",
      input: { path },
      action: "allow",
    }));
    await approval.mount(coordinator, { rules });
    const action = async (path: string) => {
      const tool_input = { path, content: "x" };
      return (await coordinator.hooks.emit("tool:pre", { tool_name: "write", tool_call_id: "c", tool_input }))
        .action;
    };
    for (const path of ["docs/new.md", "docs/a/new.md", `${folder}/docs/new.md`]) {
      assertEquals([path, await action(path)], [path, "continue"]);
    }
    for (
      const path of ["docs/link.md", "docs/deep/key", "docs/deep/new", "secret/key", "docs/../secret/key"]
    ) {
      assertEquals([path, await action(path)], [path, "ask_user"]);
    }
  }));
