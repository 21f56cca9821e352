// What Cucumber's language service makes of sentences: `node language_service.cjs FOLDER`, where FOLDER/node_modules has
// the package. Reads {"files": {name: text}, "lines": [...]} and writes the expressions, types and errors that it finds,
// and of each line the expressions that match it.
const { createRequire } = require("node:module");
const { join } = require("node:path");
const { readFileSync } = require("node:fs");

const load = createRequire(join(process.argv[2], "package.json"));
const { ExpressionBuilder } = load("@cucumber/language-service");
const { NodeParserAdapter } = load("@cucumber/language-service/node");

const { files, lines } = JSON.parse(readFileSync(0, "utf8"));
const sources = Object.entries(files).map(([name, content]) => ({
  languageName: "python",
  uri: `file:///${name}`,
  content,
}));
const { expressionLinks, parameterTypeLinks, errors } = new ExpressionBuilder(new NodeParserAdapter()).build(sources, []);
const expressions = expressionLinks.map(({ expression }) => expression);
process.stdout.write(
  JSON.stringify({
    expressions: expressions.map(({ source }) => source),
    types: parameterTypeLinks.map(({ parameterType }) => parameterType.name),
    errors: errors.map(String),
    matches: lines.map((line) => expressions.filter((each) => each.match(line)).map(({ source }) => source)),
  }),
);
