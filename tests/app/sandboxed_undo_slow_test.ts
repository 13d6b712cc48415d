/** Undo of what a sandboxed module changed. */
import { assertEquals } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { calling, dataUrl, serverWith, toolModule } from "./settings_effects/kit.ts";

Deno.test("a sandboxed module keeps files within its grant only", async () => {
  await using place = await temporaryFolder();
  const folder = await Deno.realPath(place.path);
  await using server = serverWith("limits.max_undo_bytes", 1000, "server", {
    beside: { permissions: { max: { write: [folder] } }, modules: { allow: ["data:"] } },
  });
  const body = `
    const keep = coordinator.getCapability("session.keep_before");
    const change = { before: "QUJD", after_sha256: null };
    const kept = await keep({ path: "${folder}/a.txt", ...change });
    const refused = await keep({ path: "${folder}.txt", ...change }).catch(({ message }) => message);
    return { success: true, output: JSON.stringify([kept, refused]) };`;
  const tools = [
    { module: "tool-t", source: dataUrl(toolModule("t", body)), permissions: { write: [folder] } },
  ];
  const run = await server.run(calling("t", {}, { tools }));
  const [{ result }] = await server.entries(run, "tool:post");
  assertEquals(JSON.parse(result.output), [
    null,
    "Cannot keep a file: the plan does not let the module write it",
  ]);
  const { undone } = await server.ask(`POST /v1/runs/${run.id}/undo`);
  assertEquals(undone.map(({ action }: { action: string }) => action), ["restored"]);
  assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "ABC");
});
