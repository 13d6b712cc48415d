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
for (const [name, text] of await compile()) await write(name, text);
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
  files: ["*.js", "*.d.ts"],
};
await write("package.json", `${JSON.stringify(manifest, null, 2)}\n`);
await Deno.stdout.write(new TextEncoder().encode(`${folder}: preamp ${version}\n`));

/** Returns the files of the client as JavaScript, and their types, by name. */
async function compile(): Promise<Map<string, string>> {
  const temp = await Deno.makeTempDir(); // below deno.json the types would be those of its options
  try {
    const files = await Array.fromAsync(Deno.readDir(CLIENT), ({ name }) => name);
    const sources = files.filter((name) => name.endsWith(".ts"));
    for (const name of sources) await Deno.copyFile(new URL(name, CLIENT), `${temp}/${name}`);
    const args = ["transpile", "--quiet", "--declaration", "--outdir=out", ...sources];
    const { success } = await new Deno.Command(Deno.execPath(), { args, cwd: temp }).spawn().status;
    if (!success) throw new Error("Cannot compile src/client: see above");
    const compiled = new Map<string, string>();
    for (const name of sources.flatMap((name) => [name.replace(/ts$/, "js"), name.replace(/ts$/, "d.ts")])) {
      const text = await Deno.readTextFile(`${temp}/out/${name}`);
      // the path of the file that was read
      const own = text.replace(/^\/\/\/ <amd-module .*\n/m, "");
      compiled.set(name, own.replaceAll(/( from "\.\/\w+)\.ts"/g, '$1.js"'));
    }
    return compiled;
  } finally {
    await Deno.remove(temp, { recursive: true });
  }
}

async function write(name: string, text: string): Promise<void> {
  await Deno.writeTextFile(`${folder}/${name}`, text);
}
