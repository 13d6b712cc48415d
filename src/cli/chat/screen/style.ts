/** Colours of the screen: the 16 of the terminal only, so that its own theme decides. */
import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui";
import type { Style } from "../../terminal/format.ts";

const emphasis = (on: number, off: number) => (text: string) => `\x1b[${on}m${text}\x1b[${off}m`;
const same = (text: string) => text;

/** Returns the theme of Markdown. `NO_COLOR` removes colours, not what the marks of the text mean. */
export function markdownTheme({ cyan, dim }: Style): MarkdownTheme {
  const bold = emphasis(1, 22), italic = emphasis(3, 23), underline = emphasis(4, 24);
  return {
    heading: bold,
    link: underline,
    linkUrl: dim,
    code: cyan,
    codeBlock: cyan,
    codeBlockBorder: dim,
    quote: italic,
    quoteBorder: dim,
    hr: dim,
    listBullet: same,
    bold,
    italic,
    strikethrough: emphasis(9, 29),
    underline,
  };
}

/** Returns the theme of lists to choose from. */
export function listTheme({ bold, cyan, dim }: Style): SelectListTheme {
  return { selectedPrefix: cyan, selectedText: bold, description: dim, scrollInfo: dim, noMatch: dim };
}

/** Returns the theme of the input line. */
export function editorTheme(style: Style): EditorTheme {
  return { borderColor: style.dim, selectList: listTheme(style) };
}
