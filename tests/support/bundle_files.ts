/** Bundles of tests: their files as texts, read from memory. */
import { createModuleTable } from "../../src/app/module_table.ts";
import type { FileReader } from "../../src/bundle/files.ts";
import { importBundle, type ImportedPlan, type ImportOptions } from "../../src/bundle/import.ts";

const TABLE = createModuleTable();
const ROOT = "file:///bundle/";

/** Files by URL, or by their path below the bundle's folder. */
export type BundleTexts = Readonly<Record<string, string>>;

/** Returns a reader of texts, and the URLs that it was asked for. */
export function textReader(texts: BundleTexts): FileReader & { asked: string[] } {
  const files = new Map(Object.entries(texts).map(([path, text]) => [new URL(path, ROOT).href, text]));
  const asked: string[] = [];
  return {
    asked,
    read(url) {
      asked.push(url);
      const text = files.get(url);
      return Promise.resolve(text === undefined ? null : new TextEncoder().encode(text));
    },
    list(url) {
      const names = [...files.keys()].filter((file) => file.startsWith(url)).map((file) =>
        file.slice(url.length).replace(/(?<=\/).*/s, "")
      );
      return Promise.resolve(url.startsWith(ROOT) && names.length > 0 ? [...new Set(names)] : null);
    },
  };
}

/** Imports the bundle of some texts. @throws if it is a plan. */
export async function importTexts(
  texts: BundleTexts,
  { path = "bundle.md", ...options }: { path?: string } & Partial<ImportOptions> = {},
): Promise<ImportedPlan> {
  const imported = await importBundle({ root: { url: ROOT, label: "" }, path }, {
    reader: textReader(texts),
    builtins: TABLE.ids,
    async keysOf(module) {
      const { properties } = (await TABLE.listing(module)).config_schema as { properties?: object };
      return properties ? new Set(Object.keys(properties)) : null;
    },
    pathOf: (url) => decodeURIComponent(url.slice(ROOT.length)),
    ...options,
  });
  if (imported === null) throw new Error("it is a plan");
  return imported;
}

/** Returns the messages of a report. */
export function messagesOf({ report }: ImportedPlan, level?: "note" | "warning"): string[] {
  return report.filter((line) => level === undefined || line.level === level).map(({ message }) => message);
}
