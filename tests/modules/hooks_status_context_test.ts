import { assertEquals, assertMatch } from "../assert.ts";
import { fakeCoordinator } from "../support/coordinator.ts";
import { inFolder } from "../support/folder.ts";
import { mount } from "../../modules/hooks-status-context/mod.ts";

async function statusOf(folder: string, config: Record<string, unknown> = {}, read = [folder]) {
  const { coordinator, emit } = fakeCoordinator({}, {}, { read });
  await mount(coordinator, config);
  const { injections } = await emit("provider:request", {});
  return injections[0];
}

Deno.test("hooks-status-context states time, folder and branch, in a message that is not stored", async () => {
  await inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/.git`);
    await Deno.writeTextFile(`${folder}/.git/HEAD`, "ref: refs/heads/feat/one\n");
    const status = await statusOf(folder);
    assertEquals([status?.ephemeral, status?.role], [true, "user"]);
    const root = await Deno.realPath(folder);
    assertMatch(status!.text, /^<status>\nTime: \w+day 2026-01-0\d \d\d:\d\d [+-]\d\d:\d\d \(.+\)\n/);
    assertEquals(status!.text.split("\n").slice(2), [`Folder: ${root}`, "Git: branch feat/one", "</status>"]);
  });
});

Deno.test("hooks-status-context states the commit of a detached HEAD, and the branch of a work tree", async () => {
  await inFolder(async (folder) => {
    const quiet = { include_datetime: false };
    await Deno.mkdir(`${folder}/main/.git/worktrees/two`, { recursive: true });
    await Deno.writeTextFile(`${folder}/main/.git/HEAD`, `${"0123456789abcdef".repeat(2)}\n`);
    await Deno.mkdir(`${folder}/two`);
    await Deno.writeTextFile(`${folder}/two/.git`, `gitdir: ${folder}/main/.git/worktrees/two\n`);
    await Deno.writeTextFile(`${folder}/main/.git/worktrees/two/HEAD`, "ref: refs/heads/two\n");
    assertMatch((await statusOf(`${folder}/main`, quiet))!.text, /\nGit: commit 0123456789ab\n/);
    const two = { ...quiet, root: `${folder}/two` };
    assertMatch((await statusOf(folder, two))!.text, /\nGit: branch two\n/);
    // the work tree's folder is outside of the grant
    assertEquals((await statusOf(`${folder}/two`, quiet))!.text.includes("Git:"), false);
  });
});

Deno.test("hooks-status-context leaves out what it may not read, is asked to leave out, or does not find", async () => {
  await inFolder(async (folder) => {
    assertEquals((await statusOf(folder))!.text.includes("Git:"), false);
    const none = await statusOf(folder, { include_datetime: false, include_git: false }, []);
    assertEquals(none, undefined);
    await Deno.mkdir(`${folder}/.git/HEAD`, { recursive: true });
    assertEquals((await statusOf(folder))!.text.includes("Git:"), false);
  });
});
