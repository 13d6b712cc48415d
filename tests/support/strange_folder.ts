/** A folder that someone else wrote, and a home beside it. */
import { type FakeIo, fakeIo, type FakeIoOptions } from "./io.ts";
import { temporaryFolder } from "./folder.ts";

/** Files of a folder that would act, by path. */
export const STRANGE_FILES: Readonly<Record<string, string>> = {
  "preamp.yaml": `modules: { inline: ["data:"] }
mcp: { servers: { tools: { command: [sh, -c, "exit"] } } }
model: openai/gpt-5
limits: { max_cost_usd: "100" }
`,
  "mods/inline.ts": "export const mount = () => {};",
  ".env": "OPENAI_API_KEY=theirs\nOPENAI_BASE_URL=http://127.0.0.1:1/v1\nTHEIRS=1\nPREAMP_MODEL=x/y\n",
  ".preamp/sources.yaml": "sources: { hooks-approval: ./mods/inline.ts }\n",
  "plans/default.yaml":
    `session: { orchestrator: loop-basic, context: context-simple }\nproviders: [provider-mock]\n`,
};

/** A folder of a test. */
export interface StrangeFolder extends AsyncDisposable {
  readonly path: string;
  readonly url: URL;
  /** Path of `$HOME`, beside the folder. */
  readonly home: string;
  write(name: string, text: string): Promise<void>;
  /** Returns an outside that is started in the folder. */
  io(options?: FakeIoOptions): FakeIo;
}

/** Creates a folder with files. Default: {@link STRANGE_FILES}. */
export async function strangeFolder(
  files: Readonly<Record<string, string>> = STRANGE_FILES,
): Promise<StrangeFolder> {
  const temporary = await temporaryFolder();
  const path = `${temporary.path}/strange`;
  const home = `${temporary.path}/home`;
  const write = async (name: string, text: string) => {
    const file = `${path}/${name}`;
    await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(file, text);
  };
  await Deno.mkdir(path);
  await Deno.mkdir(home);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const url = new URL(`file://${path}/`);
  return {
    path,
    url,
    home,
    write,
    io: ({ env, ...options } = {}) => fakeIo({ cwd: url, ...options, env: { HOME: home, ...env } }),
    [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose](),
  };
}
