import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Says what Java itself reads, so that our readers of its formats can be compared with the real thing.
 * `java JavaOracle.java properties`: each line of standard input is a file in hexadecimal bytes; the answer is one
 * line of `key=value` in hexadecimal UTF-16, sorted by key, or `error`.
 * `java JavaOracle.java regex`: each line is a pattern and texts in hexadecimal UTF-16, divided by blanks; the answer
 * is one digit for each text, 1 where the pattern matches all of it, or `error`.
 */
public class JavaOracle {
    public static void main(String[] arguments) throws IOException {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(arguments[0].equals("properties") ? properties(line) : regex(line.split(" ", -1)));
        }
        answers.flush();
    }

    private static String properties(String hex) throws IOException {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(bytes));
        } catch (IllegalArgumentException malformed) {
            return "error";
        }
        TreeMap<String, String> sorted = new TreeMap<>();
        properties.forEach((key, value) -> sorted.put(toHex((String) key), toHex((String) value)));
        StringBuilder line = new StringBuilder();
        sorted.forEach((key, value) -> line.append(line.length() == 0 ? "" : " ").append(key).append('=').append(value));
        return line.toString();
    }

    private static String regex(String[] words) {
        Pattern pattern;
        try {
            pattern = Pattern.compile(fromHex(words[0]));
        } catch (PatternSyntaxException refused) {
            return "error";
        }
        StringBuilder line = new StringBuilder();
        for (int i = 1; i < words.length; i++) {
            line.append(pattern.matcher(fromHex(words[i])).matches() ? '1' : '0');
        }
        return line.toString();
    }

    private static String toHex(String text) {
        StringBuilder hex = new StringBuilder();
        text.chars().forEach(unit -> hex.append(String.format("%04x", unit)));
        return hex.toString();
    }

    private static String fromHex(String hex) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4) {
            text.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        }
        return text.toString();
    }
}
