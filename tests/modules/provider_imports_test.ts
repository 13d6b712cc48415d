/** Vendors' packages are imported on first use: a plan that names one vendor loads one package. */
import { assert, assertEquals } from "../assert.ts";

const ROOT = new URL("../../", import.meta.url);
/** Vendors' packages by module; provider-ollama has none. */
const CLIENTS: Readonly<Record<string, RegExp>> = {
  "provider-anthropic": /^npm:\/@ai-sdk\/anthropic@/,
  "provider-gemini": /^npm:\/@ai-sdk\/google@/,
  "provider-deepseek": /^npm:\/@ai-sdk\/deepseek@/,
  "provider-groq": /^npm:\/@ai-sdk\/groq@/,
  "provider-mistral": /^npm:\/@ai-sdk\/mistral@/,
  "provider-xai": /^npm:\/@ai-sdk\/xai@/,
  "provider-openai": /^npm:\/@ai-sdk\/openai(-compatible)?@/,
};
const ANY = Object.values(CLIENTS);

interface Dependency {
  readonly code?: { readonly specifier?: string };
  readonly isDynamic?: boolean;
}

interface Graph {
  readonly modules: readonly { readonly specifier: string; readonly dependencies?: readonly Dependency[] }[];
  readonly redirects: Readonly<Record<string, string>>;
}

async function graphOf(entry: string): Promise<Graph> {
  const args = ["info", "--json", new URL(entry, ROOT).href];
  const { stdout, success } = await new Deno.Command(Deno.execPath(), { args, cwd: ROOT }).output();
  assert(success, `deno ${args.join(" ")} failed`);
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** Returns the packages that a file imports itself or through others, without dynamic imports. */
function staticPackages({ modules, redirects }: Graph, entry: string): string[] {
  const files = new Map(modules.map((module) => [module.specifier, module.dependencies ?? []]));
  const seen = new Set<string>();
  const visit = (specifier: string) => {
    if (seen.has(specifier)) return;
    seen.add(specifier);
    for (const { code, isDynamic } of files.get(specifier) ?? []) {
      const target = code?.specifier;
      if (target !== undefined && !isDynamic) visit(redirects[target] ?? target);
    }
  };
  visit(new URL(entry, ROOT).href);
  return [...seen].filter((specifier) => specifier.startsWith("npm:"));
}

Deno.test("the program, the server and the modules import no vendor's client before its first use", async () => {
  const graph = await graphOf("main.ts");
  const entries = ["main.ts", "src/server/mod.ts", "src/app/module_table.ts"];
  for (const entry of [...entries, ...Object.keys(CLIENTS).map((id) => `modules/${id}/mod.ts`)]) {
    const packages = staticPackages(graph, entry);
    assertEquals(packages.filter((name) => ANY.some((client) => client.test(name))), [], entry);
  }
});

for (const [id, own] of Object.entries(CLIENTS)) {
  Deno.test(`the first use of ${id} imports its vendor's client and no other`, async () => {
    const graph = await graphOf(`modules/${id}/mod.ts`);
    const packages = graph.modules.flatMap(({ dependencies = [] }) =>
      dependencies.map(({ code }) => graph.redirects[code?.specifier ?? ""] ?? code?.specifier ?? "")
    );
    assert(packages.some((name) => own.test(name)), packages.join(" "));
    assertEquals(packages.filter((name) => ANY.some((client) => client !== own && client.test(name))), []);
  });
}
