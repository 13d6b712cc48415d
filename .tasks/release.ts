/**
 * `deno task release [FOLDER]`: `preamp/client` as a package for npm, in `dist/npm` by default. It has no
 * dependencies; `npm publish dist/npm` publishes it. Other files of the folder stay, and are not published.
 */

const ROOT = new URL("../", import.meta.url);
const CLIENT = new URL("src/client/", ROOT);
const [folder = `${ROOT.pathname}dist/npm`] = Deno.args;

interface Manifest {
  version: string;
  license: string;
}

await Deno.mkdir(folder, { recursive: true });
const { version, license }: Manifest = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
const { code, types } = await compile();
await write("mod.js", code);
await write("mod.d.ts", types);
await write("README.md", await Deno.readTextFile(new URL("README.md", CLIENT)));
await write("LICENSE", await Deno.readTextFile(new URL("LICENSE", ROOT)));
const manifest = {
  name: "preamp",
  version,
  description: "Client of the HTTP API of a Preamp server, for Node, Deno and browsers",
  license,
  type: "module",
  sideEffects: false,
  engines: { node: ">=20" },
  exports: { "./client": { types: "./mod.d.ts", default: "./mod.js" } },
  files: ["mod.js", "mod.d.ts"],
};
await write("package.json", `${JSON.stringify(manifest, null, 2)}\n`);
await Deno.stdout.write(new TextEncoder().encode(`${folder}: preamp ${version}\n`));

/** Returns the client as JavaScript, and its types. */
async function compile(): Promise<{ code: string; types: string }> {
  const temp = await Deno.makeTempDir(); // below deno.json the types would be those of its options
  try {
    await Deno.copyFile(new URL("mod.ts", CLIENT), `${temp}/mod.ts`);
    const args = ["transpile", "--quiet", "--declaration", "--outdir=out", "mod.ts"];
    const { success } = await new Deno.Command(Deno.execPath(), { args, cwd: temp }).spawn().status;
    if (!success) throw new Error("Cannot compile src/client/mod.ts: see above");
    const types = await Deno.readTextFile(`${temp}/out/mod.d.ts`);
    return {
      code: await Deno.readTextFile(`${temp}/out/mod.js`),
      types: types.replace(/^\/\/\/ <amd-module .*\n/m, ""), // the path of the file that was read
    };
  } finally {
    await Deno.remove(temp, { recursive: true });
  }
}

async function write(name: string, text: string): Promise<void> {
  await Deno.writeTextFile(`${folder}/${name}`, text);
}
